"""One record in memory: changed in place under the store's lock, reported as a frozen one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeAlias

from idemcore.record import Answer, Claim, Found, Record, State, Tombstone

EVICTED: Final = "evicted"
"""The reason of a tombstone whose answer was given up for want of room."""

_LEASED: Final = (State.CLAIMED, State.COMMITTED)

Line: TypeAlias = "OrderedDict[Entry, None]"
"""Entries in the order in which they may go. By themselves, not by their names: that is hashed in one step."""


class Entry:
    """One record, changed in place under the store's lock. Times in seconds of the store's clock."""

    expires_at: float
    line: Line | None

    __slots__ = (
        "answer",
        "attempt",
        "claimed_at",
        "completed_at",
        "expires_at",
        "fingerprint",
        "hold",
        "identity",
        "lease_until",
        "line",
        "reason",
        "room",
        "state",
        "token",
    )

    def __init__(self, claim: Claim, room: int, now: float) -> None:
        # The hot path: written out, though `begin` says half of it again.
        self.identity, self.fingerprint, self.token, self.attempt, lease, _, _, self.hold = claim
        self.state = State.CLAIMED
        self.claimed_at = now
        self.lease_until = now + lease
        self.reason = ""
        self.answer: Answer | None = None
        self.completed_at: float | None = None
        self.room = room

    def begin(self, claim: Claim, now: float) -> None:
        """A new attempt; the fingerprint stays."""
        self.attempt = claim.attempt
        self.hold = claim.hold
        self.claimed_at = now
        self.reason = ""
        self.token = claim.token
        self.state = State.CLAIMED
        self.lease_until = now + claim.lease

    def finish(self, outcome: Answer | Tombstone, now: float, wall_now: float) -> None:
        """The work has ended. Bytes are copied where a caller could still change them."""
        if isinstance(outcome, Answer):
            kind, meta, body = outcome
            frozen = type(meta) is bytes and type(body) is bytes
            self.answer = outcome if frozen else Answer(kind, bytes(meta), bytes(body))
            self.reason = ""
            ended = State.COMPLETED
        else:
            self.reason = outcome.reason
            ended = State.TOMBSTONE
        self.completed_at = wall_now
        # Last, and in one step: what an interrupt leaves behind is still claimed, or it is finished.
        self.state = ended
        self.hold = False
        self.lease_until = now

    def holds(self, outcome: Answer | Tombstone) -> bool:
        """Whether this outcome is what was recorded, its answer perhaps given up since."""
        if isinstance(outcome, Answer):
            return self.answer == outcome if self.state is State.COMPLETED else self.reason == EVICTED
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
        # tuple.__new__: the class's own __new__ is a function in Python and doubles the cost of a replay.
        return tuple.__new__(
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
                self.answer,
                self.reason,
                self.completed_at,
            ),
        )

    def summary(self, now: float) -> Found:
        """The record as seen now, without its answer."""
        record, answer = self.report(now), self.answer
        kind, size = (None, None) if answer is None else (answer.kind, len(answer.body))
        return Found(self.identity, record._replace(answer=None), kind, size, self.identity)
