"""What observers see: one frozen class for each thing that happens, with its fields and its log level.

An observer is any callable that takes an event. Events about an operation carry its identity, whose text
shows a digest only, so what is logged here never reveals a key, a scope or an answer. `log_events` is the
default observer; it writes to the standard logger ``idemcore``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

from idemcore.identity import Identity
from idemcore.machine import Settlement

_log = logging.getLogger("idemcore")


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened, to one operation or to the store as a whole."""

    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "something happened"

    def __str__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        about = "".join(f" #{value.digest}" for _, value in values if isinstance(value, Identity))
        details = ", ".join(
            f"{name}={_shown(value)}" for name, value in values if not isinstance(value, Identity)
        )
        said = f"{type(self).__name__}: {self.text}{about}"
        return f"{said} ({details})" if details else said


@dataclass(frozen=True, slots=True)
class OperationEvent(Event):
    """Something happened to one operation.

    Attributes:
        identity: to which one.
    """

    identity: Identity


@dataclass(frozen=True, slots=True)
class Started(OperationEvent):
    """User code is about to run; an attempt above 1 is a takeover."""

    text = "run started"

    attempt: int


@dataclass(frozen=True, slots=True)
class TakenOver(OperationEvent):
    """A run that did not finish is replaced by another one: its effect may be there, and come a second time.

    Attributes:
        attempt: the new one's number.
        age: of the claim that was never finished, in seconds.
    """

    level = logging.WARNING
    text = "unfinished run taken over, its effect may be repeated"

    attempt: int
    age: float


@dataclass(frozen=True, slots=True)
class Replayed(OperationEvent):
    """A kept outcome was given back."""

    text = "outcome replayed"


@dataclass(frozen=True, slots=True)
class Refused(OperationEvent):
    """A request was refused; `code` is that of the error."""

    level = logging.INFO
    text = "request refused"

    code: str


@dataclass(frozen=True, slots=True)
class StoreFailed(OperationEvent):
    """No claim was made, because the store is away or full; `error` is the class of what went wrong."""

    level = logging.WARNING
    text = "no claim made, the store is unavailable or full"

    error: str


@dataclass(frozen=True, slots=True)
class RecordDamaged(OperationEvent):
    """A record, or the outcome that it keeps, cannot be read, so its operation neither runs nor replays until
    somebody has looked.

    Each process says it once of a record; its further retries are `Refused`.
    """

    level = logging.ERROR
    text = "record unreadable, look at it"

    reason: str


@dataclass(frozen=True, slots=True)
class Settled(OperationEvent):
    """An attempt ended and the store knows it."""

    text = "attempt settled"

    attempt: int
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class AnswerNotKept(OperationEvent):
    """The work is done and its answer could not be kept: retries will be told so and run nothing.

    Of an exception that is ``not_rebuildable`` its class's name and its text are kept: retries raise
    `RecordedFailure`.
    """

    level = logging.WARNING
    text = "answer not kept"

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class OutcomeInDoubt(OperationEvent):
    """It is open whether the work was done; nothing runs again until `resolve`.

    Said by the run itself; of a run that was killed, by its first retry in each process. Further ones are
    `Refused`.
    """

    level = logging.ERROR
    text = "outcome unknown, resolve it"

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class LateFinish(OperationEvent):
    """An attempt finished after it had lost its claim: its effect may be there twice.

    Attributes:
        attempt: the late one.
        winner_given: whether its caller got the outcome that stands.
    """

    level = logging.ERROR
    text = "finished after losing the claim, check for a double effect"

    attempt: int
    winner_given: bool


@dataclass(frozen=True, slots=True)
class MarkRolledBack(OperationEvent):
    """An attempt was completed outside of what it had joined: that transaction was rolled back, and no other
    was joined. Its answer is kept; a process that had died before would have left rows without a record.
    """

    level = logging.ERROR
    text = "completed after its joined transaction was rolled back, join again after every rollback"

    attempt: int


@dataclass(frozen=True, slots=True)
class RecordingFailed(OperationEvent):
    """The work is done but could not be recorded; the caller has its answer, recording is retried."""

    level = logging.ERROR
    text = "recording failed after the work was done, retrying"

    attempt: int
    error: str


@dataclass(frozen=True, slots=True)
class RecordingRecovered(OperationEvent):
    """A recording that had failed went through."""

    level = logging.WARNING
    text = "recording went through after all"

    attempt: int
    tries: int


@dataclass(frozen=True, slots=True)
class RecordingLost(OperationEvent):
    """The bounded retries are used up: the work is done and no record says so."""

    level = logging.CRITICAL
    text = "work done and never recorded, a retry may run it again"

    attempt: int
    tries: int


@dataclass(frozen=True, slots=True)
class ReleaseFailed(OperationEvent):
    """A claim could not be given up; it stands until its lease ends."""

    level = logging.WARNING
    text = "release failed, the claim stands until its lease ends"

    attempt: int
    error: str


@dataclass(frozen=True, slots=True)
class RenewalFailed(OperationEvent):
    """A renewal did not reach the store, and is tried again until the lease ends; or it got there too late.

    Attributes:
        attempt: whose.
        error: the class of what went wrong. ``sent_late``: its lease was over before, and the claim stands
            again, for nobody had taken it over.
    """

    level = logging.WARNING
    text = "lease renewal failed"

    attempt: int
    error: str


@dataclass(frozen=True, slots=True)
class LeaseEnded(OperationEvent):
    """A run is still going and its claim does not stand any more: another run may start beside it.

    Attributes:
        attempt: the one that still runs.
        reason: ``max_hold``; ``lost``, another run has started; ``not_renewed``, the store did not answer, or
            there are more claims than it renews in time.
    """

    level = logging.ERROR
    text = "lease ended while the run goes on"

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Evicted(OperationEvent):
    """A store short of room dropped an answer and kept the fact; its retries will run nothing."""

    level = logging.WARNING
    text = "answer evicted for want of room"


@dataclass(frozen=True, slots=True)
class Unprotected(OperationEvent):
    """The store is down and `fail_open` let the request run without protection."""

    level = logging.WARNING
    text = "ran unprotected, the store is down"


@dataclass(frozen=True, slots=True)
class Resolved(OperationEvent):
    """An operator settled an outcome that no run had settled; `verdict` is what it became."""

    level = logging.WARNING
    text = "outcome resolved by an operator"

    verdict: str


@dataclass(frozen=True, slots=True)
class Abandoned(OperationEvent):
    """A sweep removed a claim that nobody finished or retried: its effect may be there, unrecorded."""

    level = logging.WARNING
    text = "unfinished run removed after its retention, look for its effect"


@dataclass(frozen=True, slots=True)
class SweepFailed(Event):
    """A background sweep ended before its end; the next one comes in its turn.

    Attributes:
        error: the class of what went wrong.
    """

    level = logging.WARNING
    text = "background sweep failed, the next one tries again"

    error: str


def _shown(value: object) -> str:
    if isinstance(value, Settlement):
        return value.value
    return f"{value:.1f}" if isinstance(value, float) else str(value)


Observer: TypeAlias = Callable[[Event], None]


def log_events(event: Event) -> None:
    """Writes the event to the logger ``idemcore`` at its own level."""
    if _log.isEnabledFor(event.level):
        _log.log(event.level, "%s", event)
