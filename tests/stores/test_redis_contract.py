"""The store contract, on Redis."""

from __future__ import annotations

from idemcore.identity import Identity
from idemcore.testing.contract import StoreContract, UnreadableContract
from tests.stores.redis_case import OnRedis


class TestRedis(OnRedis, StoreContract):
    """Everything that a store must do."""


class TestUnreadableInRedis(OnRedis, UnreadableContract):
    """Values of a newer version, damaged ones, and keys of another type."""

    def damages(self) -> list[str]:
        return ["format", "state", "kind", "hold", "length"]

    def damage(self, identity: Identity, kind: str) -> None:
        if kind == "length":
            self.keyspace.client.append(self.keyspace.names.of(identity)[0], b"!")
        else:
            field = {"format": 0, "state": 1, "hold": 2, "kind": 3}[kind]
            self.keyspace.write(identity, field, 2 if kind == "format" else b"?")
