"""Records in this process's memory: facts are never dropped before their time, bodies go first.

Memory is per process: another worker, and a child after a fork, does not see what is recorded here. It
suits tests, command-line programs and servers of one process; use a database for anything else.

One lock guards a few dicts and is never held while a caller's code runs. (A signal handler is no caller: one
that asks the store may wait for the very thread that it has interrupted.) Time comes from a monotonic
clock; the wall clock only stamps outcomes. Every write removes a bounded number of dead records, so
memory shrinks without anyone asking for it, whatever the number of records.

Room is counted in bytes. Under pressure the oldest answers are given up, each leaving a tombstone
(``evicted``) so that its operation still never runs again; what remains is refused with `StoreFull`.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Final

from idemcore import forked
from idemcore.errors import ConfigurationError
from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Found, Record, State, Stored, Superseded, Swept, Tombstone
from idemcore.stores.base import FAILED_AFTER_COMMIT, ReleaseTo, Verdict, verdict_token
from idemcore.stores.entry import Entry
from idemcore.stores.shelf import Shelf

_log: Final = logging.getLogger("idemcore.stores.memory")

DEFAULT_MAX_BYTES: Final = 256 << 20
"""Room for about 250,000 outcomes with bodies of 200 bytes."""


class MemoryStore(forked.Forkable):
    """Keeps records in memory, for one process.

    Args:
        max_bytes: room for records, counted as what Python spends on them. Claims and facts come first;
            answers share what is left.
        clock: seconds that only ever grow; decides leases and retention.
        wall_clock: seconds since the epoch; only stamps when an outcome was recorded.

    Raises:
        ConfigurationError: `max_bytes` is not positive.
    """

    def __init__(
        self,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        if max_bytes <= 0:
            raise ConfigurationError("MemoryStore(max_bytes=…) must be positive.")
        self._listeners: tuple[Callable[[Identity], None], ...] = ()
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._shelf = Shelf(max_bytes)
        forked.register(self)

    def __repr__(self) -> str:
        return f"MemoryStore(<{len(self)} records>)"

    def __len__(self) -> int:
        return len(self._shelf.entries)

    def add_listener(self, listener: Callable[[Identity], None]) -> None:
        """See `EvictingStore.add_listener`."""
        with self._lock:
            self._listeners += (listener,)

    def reserve(self, claim: Claim) -> Record | None:
        """See `Store.reserve`.

        Raises:
            StoreFull: claims and facts alone fill the room.
        """
        shelf = self._shelf
        with self._lock:
            now = self._clock()
            entry = shelf.entries.get(claim.identity)
            if entry is not None:
                if entry.expires_at > now or not entry.forgettable(now):
                    return entry.report(now)
                shelf.remove(entry)
            shelf.admit(claim, claim.max_hold + claim.retention, now)
        if shelf.evicted:
            self._announce()
        return None

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        """See `Store.take_over`."""
        with self._lock:
            now = self._clock()
            entry = self._shelf.entries.get(claim.identity)
            if entry is None:
                return False
            if entry.token == seen_token and (
                entry.state is State.RELEASED or (entry.state is State.CLAIMED and entry.lease_until <= now)
            ):
                entry.begin(claim, now)
                self._shelf.keep(entry, claim.max_hold + claim.retention, now)
                return True
            return (
                entry.state is State.CLAIMED and entry.token == claim.token and entry.lease_until > now
            )  # an earlier try of this very take-over did it

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        """See `Store.complete`. An answer that can never fit leaves a tombstone (``evicted``)."""
        shelf = self._shelf
        with self._lock:
            now = self._clock()
            entry = shelf.entries.get(claim.identity)
            # Nearly always it is this claim's own record, and then there is nothing more to ask.
            if entry is None or entry.token != claim.token or entry.state is not State.CLAIMED:
                if entry is not None and not _may_complete(entry, claim, now):
                    if not entry.forgettable(now):
                        if entry.token == claim.token and entry.holds(outcome):
                            return _STORED
                        return Superseded(entry.report(now))
                    shelf.remove(entry)
                    entry = None
                if entry is None:
                    # Work that is done is recorded even where a new claim would be refused for want of room.
                    entry = shelf.admit(claim, claim.retention, now, overfill=True)
                entry.token = claim.token
            entry.attempt = claim.attempt
            shelf.finish(entry, outcome, claim.retention, now, self._wall_clock())
        if shelf.evicted:
            self._announce()
        return _STORED

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        """See `Store.release`."""
        with self._lock:
            now = self._clock()
            entry = self._shelf.entries.get(claim.identity)
            if entry is None:
                return to == "deleted"
            if entry.token != claim.token:
                return False
            if entry.state is State.COMMITTED:
                self._shelf.finish(
                    entry, Tombstone(FAILED_AFTER_COMMIT), claim.retention, now, self._wall_clock()
                )
                return True
            if entry.state is not State.CLAIMED:
                return entry.state.value == to or (
                    entry.state is State.TOMBSTONE and entry.reason == FAILED_AFTER_COMMIT
                )
            if to == "deleted":
                self._shelf.remove(entry)
                return True
            entry.state = State(to)
            entry.hold = to == "unknown"
            entry.reason = reason if to == "unknown" else ""
            entry.lease_until = now
            self._shelf.keep(entry, claim.retention, now)
            return True

    def renew(self, claim: Claim) -> float | None:
        """See `Store.renew`."""
        with self._lock:
            now = self._clock()
            entry = self._shelf.entries.get(claim.identity)
            if (
                entry is None
                or entry.token != claim.token
                or entry.state not in (State.CLAIMED, State.COMMITTED)
            ):
                return None
            entry.lease_until = min(now + claim.lease, entry.claimed_at + claim.max_hold)
            left = entry.lease_until - now
            self._shelf.keep(entry, left, now)  # a standing lease is never past retention
            return left

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        """See `Store.resolve`."""
        with self._lock:
            now = self._clock()
            entry = self._shelf.entries.get(identity)
            if entry is None:
                return False
            left = verdict_token(seen_token)
            if entry.token == left:  # an earlier try of a verdict on this token: was it this one?
                return entry.state is State.RELEASED if to == "released" else entry.holds(to)
            closed_in_time = to != "released" and entry.state is State.RELEASED
            if entry.token != seen_token or not (entry.open(now) or closed_in_time):
                return False
            if to == "released" and entry.state is State.COMMITTED:
                return False
            entry.token = left
            if to == "released":
                entry.state, entry.hold, entry.reason, entry.lease_until = State.RELEASED, False, "", now
                self._shelf.keep(entry, retention, now)
                return True
            self._shelf.finish(entry, to, retention, now, self._wall_clock())
        if self._shelf.evicted:
            self._announce()
        return True

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        """See `Store.forget`."""
        with self._lock:
            entry = self._shelf.entries.get(identity)
            if entry is None:
                return True
            if entry.token != seen_token or entry.report(self._clock()).lease_stands:
                return False
            self._shelf.remove(entry)
            return True

    def get(self, identity: Identity) -> Record | None:
        """See `Store.get`."""
        with self._lock:
            entry = self._shelf.entries.get(identity)
            return None if entry is None else entry.report(self._clock())

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
        """See `Store.find`. Each page looks at every record, and others wait meanwhile."""
        with self._lock:
            now = self._clock()
            matching = (
                entry
                for entry in self._shelf.entries.values()
                if (scope is None or entry.identity.scope == scope)
                and (operation is None or entry.identity.operation == operation)
                and (state is None or entry.state is state)
                and (not only_open or entry.open(now))
                and (after is None or entry.identity > after.place)
            )
            page = heapq.nsmallest(limit, matching, key=lambda entry: entry.identity)
            return [entry.summary(now) for entry in page]

    def sweep(self, limit: int) -> Swept:
        """See `Store.sweep`. Not needed to keep memory small: every write removes dead records too."""
        with self._lock:
            return self._shelf.sweep(self._clock(), limit)

    def create_schema(self) -> None:
        """Nothing to make."""

    def check(self) -> None:
        """Says in the log that other processes do not see these records."""
        _log.warning("Idempotency records are kept in memory: per process, and lost when it ends.")

    def close(self) -> None:
        """Nothing to give back; the records stay until the store itself goes."""

    def at_rest(self) -> Generator[None]:
        """Holds the lock, so that no child starts from half of a write."""
        with self._lock:
            yield

    def start_in_child(self) -> None:
        """Keeps what was recorded before the fork: a claim of the parent's is refused until its lease is
        over, which is safer than running it twice at once.
        """
        self._lock = threading.Lock()

    def _announce(self) -> None:
        with self._lock:
            evicted, self._shelf.evicted = self._shelf.evicted, []
        for listener in self._listeners:
            for identity in evicted:
                try:
                    listener(identity)
                except Exception:
                    _log.exception("A listener of the memory store raised.")


def _may_complete(entry: Entry, claim: Claim, now: float) -> bool:
    if entry.token == claim.token:
        return entry.state not in (State.COMPLETED, State.TOMBSTONE)
    return entry.fingerprint == claim.fingerprint and (
        entry.state is State.RELEASED
        or (entry.state is State.CLAIMED and entry.lease_until <= now and not entry.hold)
    )


_STORED: Final = Stored()
