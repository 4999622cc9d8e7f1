"""One record in memory: changed in place under the store's lock, reported as a frozen one."""

from __future__ import annotations

from typing import Final

from idemcore.record import Answer, Claim, Found, Kind, Record, State, Tombstone
from idemcore.stores.orders import NOWHERE, Links

EVICTED: Final = "evicted"
"""The reason of a tombstone whose answer was given up for want of room."""

_LEASED: Final = (State.CLAIMED, State.COMMITTED)

_new: Final = tuple.__new__
"""A named tuple's own is a function in Python, and would double the cost of a replay."""


class Entry(Links):
    """One record, changed in place under the store's lock. Times in seconds of the store's clock.

    There may be a million of these: what can be told from another slot has none, and an answer's parts have
    their own, for a tuple of three takes 72 bytes.
    """

    expires_at: float

    __slots__ = (
        "attempt",
        "body",
        "claimed_at",
        "completed_at",
        "expires_at",
        "fingerprint",
        "hold",
        "identity",
        "kind",
        "lease_until",
        "meta",
        "reason",
        "state",
        "token",
    )

    def __init__(self, claim: Claim, now: float) -> None:
        # The hot path: written out, though `begin` says half of it again.
        self.identity, self.fingerprint, self.token, self.attempt, lease, _, _, self.hold = claim
        self.state = State.CLAIMED
        self.claimed_at = now
        self.lease_until = now + lease
        self.reason = ""
        self.kind: Kind | None = None
        self.meta = self.body = b""
        self.completed_at: float | None = None
        self.older = self.newer = NOWHERE

    def drop_answer(self) -> None:
        """Keeps no answer, nor a part of one."""
        self.kind = None
        self.meta = self.body = b""

    def begin(self, claim: Claim, now: float) -> None:
        """A new attempt; the fingerprint stays."""
        self.attempt = claim.attempt
        self.hold = claim.hold
        self.claimed_at = now
        self.reason = ""
        self.token = claim.token
        self.state = State.CLAIMED
        self.lease_until = now + claim.lease

    def finish(self, outcome: Answer | Tombstone, wall_now: float) -> None:
        """The work has ended. Bytes are copied where a caller could still change them."""
        if isinstance(outcome, Answer):
            self.meta, self.body = bytes(outcome.meta), bytes(outcome.body)
            self.kind = outcome.kind
            self.reason = ""
            ended = State.COMPLETED
        else:
            self.reason = outcome.reason
            ended = State.TOMBSTONE
        self.completed_at = wall_now
        # Last, and in one step: what an interrupt leaves behind is still claimed, or it is finished.
        self.state = ended
        self.hold = False
        self.lease_until = self.claimed_at  # over; since when is nobody's question, and a number takes room

    def holds(self, outcome: Answer | Tombstone) -> bool:
        """Whether this outcome is what was recorded, its answer perhaps given up since."""
        if isinstance(outcome, Answer):
            kept = (self.kind, self.meta, self.body)
            return kept == outcome if self.state is State.COMPLETED else self.reason == EVICTED
        return self.state is State.TOMBSTONE and self.reason == outcome.reason

    def forgettable(self, now: float) -> bool:
        """Past retention, no standing lease, not on hold."""
        return self.expires_at <= now and not self.hold and not self._leased(now)

    def open(self, now: float) -> bool:
        """Whether it may wait for somebody: an unknown outcome, or a run whose lease is over."""
        return self.state is State.UNKNOWN or (self.state in _LEASED and self.lease_until <= now)

    def _leased(self, now: float) -> bool:
        return self.lease_until > now and (self.state is State.CLAIMED or self.state is State.COMMITTED)

    def report(self, now: float) -> Record:
        """The record as seen now."""
        kind = self.kind
        return _new(
            Record,
            (
                self.state,
                self.fingerprint,
                self.token,
                self.attempt,
                self.hold,
                now - self.claimed_at,
                self.lease_until - now,
                self.expires_at <= now,
                None if kind is None else _new(Answer, (kind, self.meta, self.body)),
                self.reason,
                self.completed_at,
            ),
        )

    def summary(self, now: float) -> Found:
        """The record as seen now, without its answer."""
        record = self.report(now)._replace(answer=None)
        size = None if self.kind is None else len(self.body)
        return Found(self.identity, record, self.kind, size, self.identity)
