"""What the store tests share: suites that explain their asserts; servers are used where they are named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from idemcore.stores.sql import SQLAlchemyStore
from tests.stores.services import MARIADB_URL, MYSQL_URL, POSTGRES_URL, REDIS_URL, REQUIRED

pytest.register_assert_rewrite("idemcore.testing.contract", "tests.stores.claims", "tests.stores.racers")

SERVERS = {
    "PostgreSQL": ("IDEMCORE_TEST_POSTGRES_URL", POSTGRES_URL, "test_postgres_*.py"),
    "Redis": ("IDEMCORE_TEST_REDIS_URL", REDIS_URL, "test_redis_*.py"),
    "MariaDB": ("IDEMCORE_TEST_MARIADB_URL", MARIADB_URL, "test_mariadb_*.py"),
    "MySQL": ("IDEMCORE_TEST_MYSQL_URL", MYSQL_URL, "test_mysql_*.py"),
}
MISSING = {server: names for server, names in SERVERS.items() if not names[1]}

unset = ", ".join(variable for server, (variable, _, _) in MISSING.items() if server != "MySQL")
if REQUIRED and unset:
    raise pytest.UsageError(f"IDEMCORE_REQUIRE_SERVICES is set, but not: {unset}.")

collect_ignore_glob = [pattern for _, _, pattern in MISSING.values()]


def pytest_report_header() -> list[str]:
    """Says what is left out."""
    return [f"stores: without {server} ({variable} is not set)" for server, (variable, _, _) in MISSING.items()]


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A `Table` as the test's module imports it, of this test alone; not made yet."""
    table = request.module.Table()
    yield table
    table.drop()


@pytest.fixture
def keyspace(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A `Keyspace` as the test's module imports it, of this test alone."""
    keyspace = request.module.Keyspace()
    yield keyspace
    keyspace.drop()


@pytest.fixture
def store(table: Any) -> Iterator[SQLAlchemyStore]:
    """By URL, its table made."""
    store = table.open()
    store.create_schema()
    yield store
    store.close()
