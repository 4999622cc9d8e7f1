"""Everything that decides lives here: `decide` before user code, `settle` after it. Pure.

No clock, no store, no HTTP, no caller's code. `decide` looks at what a store reports and says what may
happen; the arms stand in the order of the table in the documentation, and the first that matches wins.
The rules were explored exhaustively (tests/core/explorer.py): each clause that looks fussy closes a way
to run an effect twice. Change one only with the explorer beside you.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias, assert_never

from idemcore.policy import Policy
from idemcore.record import Record, State, UnreadableRecord


class Fingerprinter(Protocol):
    """Answers what this request's fingerprint is, under today's rule and under older ones."""

    @property
    def current(self) -> str:
        """The fingerprint under the rule that new records are written with."""
        ...

    def under(self, tag: str) -> str | None:
        """The fingerprint under the rule that `tag` names, or None where that rule is gone."""
        ...


def tag_of(fingerprint: str) -> str:
    """The rule that a fingerprint was made under: ``v1.<config>`` of ``v1.<config>:<hex>``."""
    return fingerprint.rpartition(":")[0]


class PlainFingerprint(NamedTuple):
    """A fingerprint that the caller computed itself; it is comparable under its own tag only."""

    current: str

    def under(self, tag: str) -> str | None:
        """The fingerprint, where `tag` is its own."""
        return self.current if tag == tag_of(self.current) else None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Row 1. The record cannot be understood: never run, never replayed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """Row 2. Nothing stands in the way: run, once `reserve` says that it inserted."""


@dataclass(frozen=True, slots=True)
class Incomparable:
    """Row 3. The stored fingerprint was made under a rule that is gone."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Rows 4 and 9. The key was used for a different request."""


class Replayable(NamedTuple):  # a tuple is made in half the time, and this one on every replay
    """Row 5. The outcome is kept, and is to be given back."""

    record: Record


@dataclass(frozen=True, slots=True)
class NotReplayable:
    """Row 6. Done, and the answer is not kept; not for now, where the owner may still record it."""

    reason: str
    final: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Row 7a. The claim is this caller's own; the acknowledgement got lost."""

    attempt: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Rows 7b and 12. Claim it by compare-and-set on the token that was seen."""

    seen_token: bytes
    attempt: int


@dataclass(frozen=True, slots=True)
class Busy:
    """Row 8. Somebody holds the claim, or has locked it (`locked`). Seconds since it began, and until its lease
    ends.
    """

    age: float
    lease_left: float


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """Rows 10 and 11. The work may have been done; only an operator settles it."""

    reason: str


Decision: TypeAlias = (
    Unreadable
    | Reserve
    | Incomparable
    | Mismatch
    | Replayable
    | NotReplayable
    | Run
    | TakeOver
    | Busy
    | OutcomeUnknown
)


def decide(
    record: Record | UnreadableRecord | None,
    fingerprinter: Fingerprinter,
    policy: Policy,
    my_token: bytes,
) -> Decision:
    """Says what a request may do, given what the store holds under its identity.

    Args:
        record: what the store reported, None for nothing.
        fingerprinter: of this request.
        policy: of this request.
        my_token: of this request's claim; user code has not run under it yet.
    """
    if isinstance(record, UnreadableRecord):  # row 1
        return Unreadable(record.reason)
    # `forgettable` says that of past retention too; asked for here, it spares most requests the call.
    if record is None or (record.past_retention and record.forgettable):  # row 2
        return Reserve()
    differs = record.fingerprint != fingerprinter.current
    if differs:  # it may be under an older rule
        expected = fingerprinter.under(tag_of(record.fingerprint))
        if expected is None:  # row 3
            return Incomparable()
        differs = expected != record.fingerprint
    if differs and policy.on_mismatch == "refuse":  # row 4, lease over and released included
        return Mismatch()
    match record.state:
        case State.COMPLETED:  # row 5
            return Replayable(record)
        case State.TOMBSTONE:  # row 6
            return NotReplayable(record.reason, final=True)
        case State.COMMITTED:  # rows 6, 7a, 8
            if not record.lease_stands:
                return NotReplayable("answer_pending", final=False)
            return _held(record, my_token)
        case State.CLAIMED if record.lease_stands:  # rows 7a, 8
            return _held(record, my_token)
        case State.CLAIMED if record.token == my_token:  # row 7b, under block and on hold too
            return TakeOver(my_token, record.attempt)
        case State.CLAIMED:  # rows 9 to 12
            if differs:
                return Mismatch()
            if record.hold or policy.on_abandoned == "block":
                return OutcomeUnknown("abandoned")
            return TakeOver(record.token, record.attempt + 1)
        case State.RELEASED:  # rows 9, 12
            return Mismatch() if differs else TakeOver(record.token, record.attempt + 1)
        case State.UNKNOWN:  # row 10
            return OutcomeUnknown(record.reason)
        case _:
            assert_never(record.state)


def locked(record: Record | UnreadableRecord | None, seen_token: bytes, refused: bytes) -> Busy | None:
    """What a take-over comes to that the store has refused: None, a race was lost, and the record has moved on.

    Where it was refused before for one and the same token, the record has not moved: somebody has locked it,
    and so works on it.

    Args:
        record: that was to be taken over.
        seen_token: its token.
        refused: the token of the take-over that was refused before, or nothing.
    """
    if seen_token != refused or not isinstance(record, Record):
        return None
    return Busy(record.age, 0.0)


def _held(record: Record, my_token: bytes) -> Run | Busy:
    if record.token == my_token:
        return Run(record.attempt)
    return Busy(record.age, record.lease_left)


class Ending(Enum):
    """How user code ended, as far as it matters."""

    SUCCESS = "an answer that the keep rule keeps"
    UNKEEPABLE = "an answer that should be kept and cannot be"
    DOUBT = "an exception that leaves it open whether the work was done"
    REFUSAL = "user code refused the request (a 4xx)"
    FAILURE = "any other answer, exception or BaseException"
    RELEASE = "user code said: nothing was done, the same request may run again"
    FORGET = "user code said: nothing was done, the key is free"


class Settlement(Enum):
    """What becomes of the claim. On a committed record all but KEEP land on a tombstone (the store's part)."""

    KEEP = "completed"
    TOMBSTONE = "tombstone"
    UNKNOWN = "unknown"
    FORGET = "deleted"
    RETRY = "released"


def ending_of(error: BaseException, policy: Policy) -> Ending:
    """Says how user code ended that raised: the nearest of its classes that the policy names decides.

    A bank's timeout is one of its errors, and still no answer; a list that is read before the other one
    would keep it as final. A group of exceptions whose own classes the policy does not name ended as what is
    in it: in doubt if one of these is, with an answer if each is one.

    Args:
        error: what was raised.
        policy: of this attempt.
    """
    endings = set()
    left = [error]  # no recursion: groups may be nested however deep
    while left:
        one = left.pop()
        ending = _named(one, policy)
        if ending is None and isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        else:
            endings.add(ending if ending is not None else Ending.FAILURE)
    if Ending.DOUBT in endings:
        return Ending.DOUBT
    return Ending.FAILURE if Ending.FAILURE in endings else Ending.SUCCESS


def _named(error: BaseException, policy: Policy) -> Ending | None:
    """What the policy says of an exception's classes. Those that any exception has say nothing of a group."""
    of_group = isinstance(error, BaseExceptionGroup)
    for cls in type(error).__mro__:
        if of_group and cls in (Exception, BaseException):
            continue
        if cls in policy.unknown:
            return Ending.DOUBT
        if cls in policy.keep:
            return Ending.SUCCESS
    return None


def settle(ending: Ending, policy: Policy, attempt: int) -> Settlement:
    """Says what becomes of the claim when user code has ended.

    Args:
        ending: how it ended.
        policy: of this attempt; under ``on_abandoned="block"`` only what says "nothing was done" frees the key.
        attempt: its number. A key is forgotten only on the first: later ones must keep the fingerprint,
            since an earlier attempt may have had an effect.
    """
    match ending:
        case Ending.SUCCESS:
            return Settlement.KEEP
        case Ending.UNKEEPABLE:
            return Settlement.TOMBSTONE
        case Ending.DOUBT:
            return Settlement.UNKNOWN
        case Ending.FAILURE:
            return Settlement.UNKNOWN if policy.on_abandoned == "block" else Settlement.RETRY
        case Ending.REFUSAL | Ending.FORGET:
            return Settlement.FORGET if attempt == 1 else Settlement.RETRY
        case Ending.RELEASE:
            return Settlement.RETRY
        case _:
            assert_never(ending)
