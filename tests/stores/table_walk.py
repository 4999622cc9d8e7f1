"""Random walks over a table on a server: its clock runs on meanwhile, so time is moved by aging the rows."""

from __future__ import annotations

from idemcore.identity import Identity
from idemcore.stores.sql import SQLAlchemyStore
from tests.stores.machine import WALKS, StoreWalk, walk
from tests.stores.server_table import ServerTable


def walk_over(table: ServerTable, store: SQLAlchemyStore) -> None:
    """A quarter of the walks that a store takes which needs no server; the table is emptied for each."""

    class Walk(StoreWalk):
        tolerance = 1_000.0

        def fresh_store(self) -> SQLAlchemyStore:
            table.execute("DELETE FROM {}")
            return store

        def move_time(self, seconds: float) -> None:
            table.age(None, seconds)

        def mark_committed(self, identity: Identity) -> None:
            table.write(identity, "state", "committed")
            table.write(identity, "hold", False)

    walk(Walk, WALKS // 4, steps=30)
