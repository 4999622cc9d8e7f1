"""The store contract, on a Redis Cluster of two servers: every record beside its index, on either of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis, RedisCluster

from idemcore.errors import ConfigurationError
from idemcore.identity import Identity
from idemcore.stores.redis import RedisStore
from idemcore.testing.contract import StoreContract
from idemcore.testing.contract.case import claim
from tests.conditions import until
from tests.stores.redis_case import Keyspace, OnRedis
from tests.stores.redis_server import PrivateServer

pytestmark = pytest.mark.slow

SLOTS = ((0, 8191), (8192, 16383))


_servers: list[PrivateServer] = []


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two servers that share the slots."""
    servers = _servers
    try:
        for _ in SLOTS:
            folder: Path = tmp_path_factory.mktemp("node")
            servers.append(PrivateServer(folder, "--cluster-enabled", "yes"))
        clients = [Redis.from_url(server.url) for server in servers]
        for client, slots in zip(clients, SLOTS, strict=True):
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", servers[1].port)
        assert until(lambda: all(_knows_all(client) for client in clients))
        for client in clients:
            client.close()
        yield
    finally:
        for server in servers:
            server.kill()
        servers.clear()


def _knows_all(client: Redis) -> bool:
    info = client.execute_command("CLUSTER", "INFO")
    text = info.decode() if isinstance(info, bytes) else str(info)
    return ("cluster_state:ok" in text or "'cluster_state': 'ok'" in text) and "16384" in text


class TestRedisCluster(OnRedis, StoreContract):
    """Everything that a store must do, through a cluster client of the caller's."""

    def open_store(self) -> RedisStore:
        self.client = RedisCluster(host="127.0.0.1", port=_servers[0].port)
        self.keyspace = Keyspace(self.client)
        return RedisStore(self.client, prefix=self.keyspace.prefix)

    def teardown_method(self) -> None:
        super().teardown_method()
        self.client.close()

    def test_both_servers_hold_records_and_all_are_found(self) -> None:
        """A walk goes from server to server; a record's index is where the record is."""
        identities = [Identity("tenant", "spread", str(number)) for number in range(40)]
        made = [self.begin(claim(identity=identity)) for identity in identities]
        for client in (Redis.from_url(server.url) for server in _servers):
            assert client.dbsize() > 1
            client.close()
        walked = []
        page = self.store.find(limit=7)
        while page:
            walked += [found.identity for found in page]
            page = self.store.find(limit=7, after=page[-1])
        assert sorted(walked) == sorted(identities)
        for mine in made:
            assert self.store.release(mine, "deleted")

    def test_one_evicting_server_is_enough_to_refuse(self) -> None:
        """Each one of them is asked."""
        with Redis.from_url(_servers[1].url) as client:
            client.config_set("maxmemory-policy", "allkeys-lfu")
            try:
                with pytest.raises(ConfigurationError, match="allkeys-lfu"):
                    RedisStore(self.client, prefix=self.keyspace.prefix).check()
            finally:
                client.config_set("maxmemory-policy", "noeviction")
