"""The schema of a store that is at work: where it is there, nobody waits for it; what is missing is made.

Whoever would wait runs into a limit of the test's own, and fails by an error.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as Database
from sqlalchemy import MetaData, create_engine, inspect
from sqlalchemy.schema import CreateIndex, DropIndex

from idemcore import Attempt, Engine
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.stores.services import MARIADB_URL, MYSQL_URL, POSTGRES_URL

IMPATIENT: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": 0.05},
    "postgresql": {"options": "-c lock_timeout=200"},
    "mariadb": {"init_command": "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1"},
    "mysql": {"init_command": "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1"},
}
URLS = {
    "sqlite": "sqlite:///{}/records.db",
    "postgresql": POSTGRES_URL,
    "mariadb": MARIADB_URL,
    "mysql": MYSQL_URL,
}
_numbers = itertools.count()


@pytest.fixture(params=[name for name, url in URLS.items() if url])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Connections that give up a lock at once."""
    url = URLS[request.param].format(tmp_path)
    engine = create_engine(url, connect_args=IMPATIENT[request.param])
    yield engine
    engine.dispose()


@pytest.fixture
def store(database: Database) -> Iterator[SQLAlchemyStore]:
    """Over a table that no other test uses."""
    table = idempotency_table(MetaData(), name=f"schema_{os.getpid()}_{next(_numbers)}")
    yield SQLAlchemyStore(database, table=table)
    table.drop(database)


def test_a_schema_that_is_there_is_waited_for_by_nobody(database: Database, store: SQLAlchemyStore) -> None:
    """With a transaction open that holds a claim, a new worker makes the schema and checks it at once."""
    store.create_schema()
    with Engine(store, observers=()) as idem, database.connect() as connection:
        attempt = idem.begin(scope="t", operation="order", key="k", fingerprint="v1.test:1")
        assert isinstance(attempt, Attempt)
        attempt.join(connection)
        worker = SQLAlchemyStore(database, table=store._table)
        worker.create_schema()
        worker.check()
        connection.commit()
        attempt.complete(b"")


def test_an_index_that_is_missing_is_made(database: Database, store: SQLAlchemyStore) -> None:
    """A worker that died between the two leaves a table without it, where DDL has no transactions."""
    store.create_schema()
    (index,) = store._table.indexes
    with database.begin() as connection:
        connection.execute(DropIndex(index))
    assert expiry_indexes(database, store) == []
    store.create_schema()
    assert expiry_indexes(database, store) == [index.name]


def test_an_index_of_another_name_will_do(database: Database, store: SQLAlchemyStore) -> None:
    """Migrations have naming rules of their own; a second index would be written for nothing."""
    store.create_schema()
    (index,) = store._table.indexes
    with database.begin() as connection:
        connection.execute(DropIndex(index))
        index.name = other = f"{store._table.name}_by_hand"
        connection.execute(CreateIndex(index))
        index.name = f"ix_{store._table.name}_expires_at"
    store.create_schema()
    assert expiry_indexes(database, store) == [other]


def expiry_indexes(database: Database, store: SQLAlchemyStore) -> list[str | None]:
    indexes = inspect(database).get_indexes(store._table.name)
    return [index["name"] for index in indexes if index["column_names"] == ["expires_at"]]
