"""What stores hold and report: bytes and durations, frozen; no policy, no clock.

Durations are measured by the store's own clock at the moment of the report, so no two clocks are ever
compared. A store of any kind speaks in these types only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias

from idemcore.identity import Identity
from idemcore.meta import decode_meta

FORMAT: Final = 1
"""The version of the record's layout; a record of another format is never run and never replayed."""

Kind: TypeAlias = Literal["returned", "raised", "http"]
KINDS: Final[tuple[Kind, ...]] = ("returned", "raised", "http")


class State(StrEnum):
    """Where a record stands."""

    CLAIMED = "claimed"
    RELEASED = "released"
    COMMITTED = "committed"
    COMPLETED = "completed"
    TOMBSTONE = "tombstone"
    UNKNOWN = "unknown"


class Claim(NamedTuple):
    """One attempt's hold on an identity, with all that a store needs to write it. Durations in seconds.

    Attributes:
        identity: the operation that is claimed.
        fingerprint: tagged digest of the request, under the current rule.
        token: random, one per `begin`; every later write carries it (fencing).
        attempt: 1 for the first run, one more for each takeover.
        lease: how long the claim stands without renewal.
        max_hold: how long it may stand at the most, renewals included, from its own start.
        retention: how long the finished record is kept, from completion.
        hold: whether a claim whose lease is over waits for an operator (``on_abandoned="block"``).
    """

    identity: Identity
    fingerprint: str
    token: bytes
    attempt: int
    lease: float
    max_hold: float
    retention: float
    hold: bool

    def __repr__(self) -> str:
        return f"Claim({self.identity!r}, attempt={self.attempt})"


class Answer(NamedTuple):
    """An outcome that can be given back: opaque bytes to the store.

    Attributes:
        kind: what the bytes are: a function's result, an exception, or an HTTP answer.
        meta: small JSON beside the body, such as status and headers.
        body: the answer itself.
    """

    kind: Kind
    meta: bytes
    body: bytes

    def __repr__(self) -> str:
        return f"Answer(kind={self.kind!r}, body=<{len(self.body)} bytes>)"


class Tombstone(NamedTuple):
    """The work is done and its answer is not kept.

    Attributes:
        reason: a short word for why, such as ``too_large``.
    """

    reason: str


class Record(NamedTuple):
    """A record as its store reports it. Durations in seconds, by the store's clock.

    Attributes:
        state: where it stands.
        fingerprint: tagged digest of the request that made it.
        token: of the claim that wrote last.
        attempt: number of that attempt.
        hold: whether only an operator may free it once its lease is over.
        age: since the claim began.
        lease_left: until the lease ends; zero or less when it is over.
        past_retention: whether the time that the record is kept for is over.
        answer: of a completed record.
        reason: of a tombstone or an unknown outcome.
        completed_at: when it was finished, seconds since the epoch by the store's clock, or None.
    """

    state: State
    fingerprint: str
    token: bytes
    attempt: int
    hold: bool
    age: float
    lease_left: float
    past_retention: bool
    answer: Answer | None = None
    reason: str = ""
    completed_at: float | None = None

    def __repr__(self) -> str:
        return f"Record({self.state.value}, attempt={self.attempt}, lease_left={self.lease_left:.3f})"

    @property
    def lease_stands(self) -> bool:
        """Whether somebody holds the claim now."""
        return self.lease_left > 0 and self.state in _LEASED

    @property
    def forgettable(self) -> bool:
        """Past retention, no standing lease, not on hold: as good as absent."""
        return self.past_retention and not self.hold and not self.lease_stands


_LEASED: Final = frozenset((State.CLAIMED, State.COMMITTED))


class UnreadableRecord(NamedTuple):
    """There is a record and it cannot be understood: a newer format, an unknown state, damaged bytes.

    Attributes:
        reason: what is wrong with it, without its content.
    """

    reason: str


class Found(NamedTuple):
    """A record in a list: all of it but its answer's bytes, so that a long list takes little room.

    Attributes:
        identity: of the record.
        record: as it stands, with `answer` left out.
        kind: of its answer, if it has one.
        body_bytes: size of that answer's body.
        place: where the list has got to; only the store that gave it reads it.
    """

    identity: Identity
    record: Record | UnreadableRecord
    kind: Kind | None
    body_bytes: int | None
    place: tuple[object, ...]

    def __repr__(self) -> str:
        return f"Found({self.identity!r}, {self.record!r})"  # `place` may hold the key


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome was recorded, now or by an earlier try of the same write."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """The outcome was not recorded: another run's record stands.

    Attributes:
        record: what stands instead.
    """

    record: Record | UnreadableRecord


class Swept(NamedTuple):
    """What one batch of a sweep removed.

    Attributes:
        finished: how many records past their retention.
        abandoned: how many runs that nobody finished; each may hide an effect that was never recorded, or
            has rows that were committed (`join`) and no answer.
        lost: which operations these were.
    """

    finished: int
    abandoned: int
    lost: tuple[Identity, ...] = ()

    @property
    def removed(self) -> int:
        """How many of both."""
        return self.finished + self.abandoned


class Outcome(NamedTuple):
    """A kept outcome as it is given back.

    Attributes:
        kind: ``returned``, ``raised`` or ``http``.
        body: the answer's bytes.
        meta: what was recorded beside it; a fresh dict, yours to change.
        completed_at: when the outcome was recorded, by the store's clock, in UTC.
    """

    kind: Kind
    body: bytes
    meta: dict[str, object]
    completed_at: datetime

    def __repr__(self) -> str:
        return f"Outcome(kind={self.kind!r}, body=<{len(self.body)} bytes>)"


def read_outcome(record: Record) -> Outcome | None:
    """The outcome that a record keeps; None where it keeps none, or a damaged one."""
    answer, stamp = record.answer, record.completed_at
    if answer is None or stamp is None:
        return None
    kind, text, body = answer
    meta = decode_meta(text) if text else {}
    if meta is None:
        return None
    try:
        completed_at = datetime.fromtimestamp(stamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    # As Outcome(…) makes it, but for a call of Python's own: this is on the way of every replay.
    return tuple.__new__(Outcome, (kind, body, meta, completed_at))
