"""The contract's hooks for Redis: a prefix for each test; time is moved from outside the store."""

from __future__ import annotations

import itertools
import os
from typing import Any, ClassVar

from redis import Redis

from idemcore.identity import Identity
from idemcore.stores.redis import RedisStore
from idemcore.stores.redis.names import Names
from idemcore.stores.redis.values import HEAD
from tests.stores.services import REDIS_URL

_numbers = itertools.count()

TIMES = slice(5, 9)
"""Where a head has its times."""


class Keyspace:
    """A prefix that no other test uses, and what a test does to the records under it.

    Args:
        client: of the server; one on the server that the environment names, if left out.
    """

    url = REDIS_URL

    def __init__(self, client: Any = None) -> None:
        self.prefix = f"idem_{os.getpid()}_{next(_numbers)}:"
        self.names = Names(self.prefix)
        self.owned = client is None
        self.client: Any = Redis.from_url(self.url) if client is None else client

    def open(self, **options: Any) -> RedisStore:
        """A store by URL."""
        return RedisStore(self.url, prefix=self.prefix, **options)

    def every(self) -> list[bytes]:
        """Names of all records."""
        return list(self.client.scan_iter(match=self.names.pattern, count=1_000))

    def age(self, identity: Identity | None, seconds: float) -> None:
        """Makes one record older, or all: what is then past its end goes, as it would have gone by then."""
        for name in self.every() if identity is None else [self.names.of(identity)[0]]:
            value = self.client.get(name)
            if value is None:
                continue
            head = list(HEAD.unpack_from(value))
            head[TIMES] = [time and time - seconds * 1_000_000 for time in head[TIMES]]
            self.client.set(name, HEAD.pack(*head) + value[HEAD.size :], keepttl=True)
            ends = self.client.pexpiretime(name)
            if ends > 0:
                self.client.pexpireat(name, max(ends - int(seconds * 1_000), 1))
        indexes = self.names.indexes if identity is None else [self.names.of(identity)[1]]
        with self.client.pipeline(transaction=False) as pipeline:
            for index in indexes:
                pipeline.zrange(index, 0, -1, withscores=True)
            for index, scores in zip(indexes, pipeline.execute(), strict=True):
                for name, score in scores:
                    if identity is None or name == self.names.of(identity)[0]:
                        self.client.zadd(index, {name: score - seconds * 1_000_000})

    def write(self, identity: Identity, field: int, value: Any) -> None:
        """Sets one field of one record's head."""
        name, _ = self.names.of(identity)
        stored = self.client.get(name)
        head = list(HEAD.unpack_from(stored))
        head[field] = value
        self.client.set(name, HEAD.pack(*head) + stored[HEAD.size :], keepttl=True)

    def ttl(self, identity: Identity) -> float:
        """Seconds until Redis drops the record; -1 for never, -2 where there is none."""
        left: int = self.client.pttl(self.names.of(identity)[0])
        return left / 1_000 if left > 0 else left

    def is_indexed(self, identity: Identity) -> bool:
        """Whether it stands among what is open."""
        name, index = self.names.of(identity)
        return self.client.zscore(index, name) is not None

    def empty(self) -> None:
        """Removes every record, and what is known of those that have gone."""
        with self.client.pipeline(transaction=False) as pipeline:
            for name in (*self.every(), *self.names.indexes):
                pipeline.delete(name)
            pipeline.execute()

    def drop(self) -> None:
        """Leaves nothing behind."""
        self.empty()
        if self.owned:
            self.client.close()


class OnRedis:
    """Mix in before a contract class."""

    expires_by_itself = True
    keyspace: Keyspace
    make_keyspace: ClassVar[type[Keyspace]] = Keyspace

    def open_store(self) -> RedisStore:
        self.keyspace = self.make_keyspace()
        return self.keyspace.open()

    def teardown_method(self) -> None:
        super().teardown_method()  # type: ignore[misc] # the contract class beside it has one
        self.keyspace.drop()

    def age(self, identity: Identity, seconds: float) -> None:
        self.keyspace.age(identity, seconds)
