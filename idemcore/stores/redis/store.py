"""The store in Redis or Valkey: each verb is one script on one record, in one round trip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from redis import Redis, RedisCluster

from idemcore.errors import AnswerTooLarge
from idemcore.identity import Identity
from idemcore.record import (
    Answer,
    Claim,
    Found,
    Record,
    State,
    Stored,
    Superseded,
    Swept,
    Tombstone,
    UnreadableRecord,
)
from idemcore.stores.base import ReleaseTo, Verdict, verdict_token
from idemcore.stores.redis import scripts
from idemcore.stores.redis.names import Names
from idemcore.stores.redis.server import Server
from idemcore.stores.redis.values import (
    claim_value,
    microseconds,
    outcome_value,
    read_reply,
    read_summary,
    reason_bytes,
)


class RedisStore:
    """Keeps records in Redis 7 or later, or in Valkey.

    What Redis loses, in a crash without an append-only file or in a failover, may run again: see
    docs/redis.md. Records go by themselves at the end of their retention; what waits for an operator stays.

    Args:
        server: a URL, such as ``redis://localhost:6379/0`` (``rediss://`` for TLS): then the connections are
            the store's own, and no answer is waited for longer than some seconds; or a client of yours,
            `redis.Redis` or `redis.cluster.RedisCluster`, which is used as it is and never closed.
        prefix: of the names of all records; stores with different ones do not meet.
        allow_eviction: whether to use a server whose maxmemory-policy is another than ``noeviction``. It
            will then forget what has run, when it is short of memory.

    Raises:
        ConfigurationError: no such URL, a client that decodes its answers, or braces in the prefix.
    """

    def __init__(
        self,
        server: str | Redis | RedisCluster,
        *,
        prefix: str = "idemcore:",
        allow_eviction: bool = False,
    ) -> None:
        self._names = Names(prefix)
        self._server = Server(server, allow_eviction=allow_eviction)

    def __repr__(self) -> str:
        return "RedisStore()"

    def reserve(self, claim: Claim) -> Record | UnreadableRecord | None:
        """See `Store.reserve`."""
        reply = self._server.run(scripts.RESERVE, self._names.of(claim.identity), claim_value(claim))
        return None if reply is None else read_reply(reply)

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        """See `Store.take_over`."""
        keys = self._names.of(claim.identity)
        return bool(self._server.run(scripts.TAKE_OVER, keys, claim_value(claim), seen_token))

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        """See `Store.complete`."""
        value, tail = _fitting(claim.identity, outcome_value(outcome, claim, claim.retention))
        reply = self._server.run(scripts.COMPLETE, self._names.of(claim.identity), value, tail)
        return _STORED if reply is None else Superseded(read_reply(reply))

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        """See `Store.release`."""
        keys, words = self._names.of(claim.identity), reason_bytes(reason) if to == "unknown" else b""
        kept = microseconds(claim.retention)
        return bool(self._server.run(scripts.RELEASE, keys, claim.token, _LETTERS[to], words, kept))

    def renew(self, claim: Claim) -> float | None:
        """See `Store.renew`."""
        keys, lease, hold = self._names.of(claim.identity), microseconds(claim.lease), claim.max_hold
        left = self._server.run(scripts.RENEW, keys, claim.token, lease, microseconds(hold))
        return None if left is None else left / 1_000_000

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        """See `Store.resolve`."""
        outcome = () if to == "released" else _fitting(identity, outcome_value(to, None, retention))
        arguments = (seen_token, verdict_token(seen_token), microseconds(retention), *outcome)
        return bool(self._server.run(scripts.RESOLVE, self._names.of(identity), *arguments))

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        """See `Store.forget`."""
        return bool(self._server.run(scripts.FORGET, self._names.of(identity), seen_token))

    def get(self, identity: Identity) -> Record | UnreadableRecord | None:
        """See `Store.get`."""
        reply = self._server.run(scripts.LOOK, self._names.of(identity))
        return None if reply is None else read_reply(reply)

    def find(
        self,
        *,
        scope: str | None = None,
        operation: str | None = None,
        state: State | None = None,
        only_open: bool = False,
        after: Found | None = None,
        limit: int,
    ) -> list[Found]:
        """See `Store.find`. All records are walked with SCAN, which looks at every name of the database, and
        may show a record twice while the server makes its table smaller. What is open is walked by an index
        instead; a finished record that cannot be read is not in it.
        """
        page: list[Found] = []
        walk = self._walk_open if only_open else self._walk_all
        for places in walk(() if after is None else after.place):
            wanted = []
            for place in places:
                name: Any = place[-1]
                identity = self._names.identity(name)
                if scope in (None, identity.scope) and operation in (None, identity.operation):
                    wanted.append((place, name, identity))
            # As many at once as are still missing: each look costs a little, and most may be left out.
            while wanted and len(page) < limit:
                some, wanted = wanted[: limit - len(page)], wanted[limit - len(page) :]
                keys = [(name, self._names.index_of(name)) for _, name, _ in some]
                for (place, _, identity), reply in zip(
                    some, self._server.run_each(scripts.SUMMARY, keys), strict=True
                ):
                    if reply is not None:
                        record, kind, body_bytes = read_summary(*reply)
                        if _is_wanted(record, state, only_open=only_open):
                            page.append(Found(identity, record, kind, body_bytes, place))
            if len(page) == limit:
                break
        return page

    def sweep(self, limit: int) -> Swept:
        """See `Store.sweep`. Finished records go by themselves, so only abandoned claims are counted: also
        those that went by themselves, for the index of what is open still tells of them.
        """
        due = self._due(limit)
        replies = self._server.run_each(scripts.SWEEP, due) if due else []
        lost = [self._names.identity(name) for (name, _), gone in zip(due, replies, strict=True) if gone]
        return Swept(finished=0, abandoned=len(lost), lost=tuple(lost))

    def create_schema(self) -> None:
        """Nothing to make."""

    def check(self) -> None:
        """Asks for the server's maxmemory-policy, and for a write that changes nothing.

        Raises:
            ConfigurationError: it evicts, or does not let this user do what a store must.
            StoreUnavailable: it cannot be reached, or is a replica.
        """
        self._server.refuse_eviction()
        self.forget(Identity("", "", ""), b"")

    def close(self) -> None:
        """Closes the store's own connections; a client of yours stays as it is."""
        self._server.close()

    def _due(self, limit: int) -> list[tuple[bytes, bytes]]:
        """Names in the indexes whose time has come, at most so many."""
        now, indexes = f"{self._server.now():.0f}", self._names.indexes
        due: list[tuple[bytes, bytes]] = []
        commands = [("ZRANGEBYSCORE", index, "-inf", now, "LIMIT", 0, limit) for index in indexes]
        for index, names in zip(indexes, self._server.ask_each(commands), strict=True):
            due += [(name, index) for name in names]
        return due[:limit]

    def _walk_all(self, place: tuple[Any, ...]) -> Iterator[list[tuple[object, ...]]]:
        """Places of records, in steps. A place holds where the next step begins, and the names of its own
        step that come after it: they are not asked for again, so a page goes on where the last one ended.
        """
        node, cursor, rest = "", 0, ()
        if place:
            node, cursor, names, number, _ = place
            rest = names[number + 1 :]
            yield _places(node, cursor, rest)
            if not node:
                return
        while True:
            node, cursor, names = self._server.scan(self._names.pattern, node, cursor, _STEP)
            # Sorted, so that two walks through a small database agree; and some names come twice.
            yield _places(node, cursor, tuple(sorted(set(names))))
            if not node:
                return

    def _walk_open(self, place: tuple[Any, ...]) -> Iterator[list[tuple[object, ...]]]:
        """Places of records that have not ended well, in steps of some indexes each."""
        first, after = place or (0, b"")
        indexes = self._names.indexes
        for start in range(first, len(indexes), _INDEXES):
            some = indexes[start : start + _INDEXES]
            each = self._server.ask_each([("ZRANGE", index, 0, -1) for index in some])
            for number, names in enumerate(each, start):
                yield [(number, name) for name in sorted(names) if number > first or name > after]


_STORED: Final = Stored()

_LARGEST: Final = 2**29 - 2**16
"""Bytes of an answer, below the limit of any value that Redis has by default (`proto-max-bulk-len`)."""

_STEP: Final = 1_000
"""Names that the server looks at in one step of a walk: well below a millisecond of its time."""

_INDEXES: Final = 32
"""Indexes of what is open that are read together: each holds a 128th of it."""

_LETTERS: Final[dict[ReleaseTo, str]] = {"released": "R", "unknown": "U", "deleted": "deleted"}


def _places(node: str, cursor: int, names: tuple[bytes, ...]) -> list[tuple[object, ...]]:
    return [(node, cursor, names, number, name) for number, name in enumerate(names)]


def _is_wanted(record: Record | UnreadableRecord, state: State | None, *, only_open: bool) -> bool:
    if isinstance(record, UnreadableRecord):
        return state is None
    if state is not None and record.state is not state:
        return False
    abandoned = record.state is State.CLAIMED and not record.lease_stands
    return not only_open or abandoned or record.state is State.UNKNOWN


def _fitting(identity: Identity, value: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """The value itself, where the server takes it: it closes the connection on what is larger."""
    if sum(map(len, value)) > _LARGEST:
        raise AnswerTooLarge(
            "The answer is larger than a value in Redis, 512 MB. Keep it elsewhere, and return where it is.",
            key_digest=identity.digest,
        )
    return value
