"""A private server for all bad days, a table and an engine for each; nothing that others use is broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.bad_days.day import Day
from tests.stores.network import Network, network
from tests.stores.private_postgres import PrivatePostgres, private_postgres
from tests.stores.services import REQUIRED


@pytest.fixture(scope="session")
def server() -> Iterator[PrivatePostgres]:
    """Runs; a test that stops it starts it again."""
    try:
        with private_postgres() as server:
            yield server
    except LookupError as error:
        if REQUIRED:
            pytest.fail(f"{error}, and IDEMCORE_REQUIRE_SERVICES is set")
        pytest.skip(str(error))


@pytest.fixture
def net(server: PrivatePostgres) -> Iterator[Network]:
    """Between the store and the server."""
    with network(server.port) as net:
        yield net


@pytest.fixture
def day(server: PrivatePostgres, net: Network) -> Iterator[Day]:
    """The store reaches its server through the network."""
    day = Day(server, net)
    yield day
    day.end()
