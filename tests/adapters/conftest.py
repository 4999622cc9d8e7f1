"""The stores that adapters are tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from idemcore import Engine
from tests.stores.services import MARIADB_URL, POSTGRES_URL, REDIS_URL

pytest.register_assert_rewrite(
    *(f"tests.adapters.scenarios_{table}" for table in ("body", "key", "options", "outcome", "replay"))
)

SERVERS = {"postgresql": POSTGRES_URL, "mariadb": MARIADB_URL, "redis": REDIS_URL}
STORES = ["memory", "sqlite", *(server for server, url in SERVERS.items() if url)]


@pytest.fixture(params=STORES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An engine over each store; quiet, for its events are looked at elsewhere."""
    if request.param in SERVERS:
        place = request.getfixturevalue(request.param)
        store = place.open()
        with Engine(store, observers=()) as idem:
            yield idem
        store.close()
        place.empty()
        return
    url_here = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'idemcore.db'}"
    with Engine(url_here, observers=()) as idem:
        idem.create_schema()
        yield idem


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """One table for all tests, which empty it: making one takes longer than most of them."""
    from tests.stores.postgres_case import Table

    yield from _made(Table())


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Any]:
    """The same there."""
    from tests.stores.mariadb_case import Table

    yield from _made(Table())


@pytest.fixture(scope="session")
def redis() -> Iterator[Any]:
    """A prefix of the tests' own, which needs no making."""
    from tests.stores.redis_case import Keyspace

    keyspace = Keyspace()
    yield keyspace
    keyspace.drop()


def _made(table: Any) -> Iterator[Any]:
    store = table.open()
    store.create_schema()
    store.close()
    yield table
    table.drop()
