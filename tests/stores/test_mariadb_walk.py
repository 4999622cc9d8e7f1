"""MariaDB against the model of the contract, along random walks."""

from __future__ import annotations

from idemcore.stores.sql import SQLAlchemyStore
from tests.stores.mariadb_case import Table
from tests.stores.table_walk import walk_over


def test_mariadb_says_what_the_model_says(table: Table, store: SQLAlchemyStore) -> None:
    """At every step of every walk."""
    walk_over(table, store)
