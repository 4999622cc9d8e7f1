"""Outcomes that are still to be recorded: work is done, and its store refused, or another run is in the way.

A recording that failed is tried again with growing pauses, its claim renewed beside it, until `max_hold`
has passed. An outcome that came too late, because another run had taken over, is offered for as long: if
that run fails, the late outcome is the one to keep. What a transaction of the caller's still locks is not
tried before that has ended; it is not held for that, so one that was forgotten can be collected. What is
never recorded is announced.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from idemcore import events
from idemcore.announcer import Announcer
from idemcore.errors import AnswerTooLarge, IdempotencyError
from idemcore.machine import Settlement
from idemcore.record import Answer, Claim, Record, State, Stored, Tombstone

if TYPE_CHECKING:
    from idemcore.identity import Identity
    from idemcore.stores.base import CallersTransaction, ReleaseTo, Store

MAX_PENDING: Final = 1000
"""How many outcomes may wait for their store; past it the oldest is given up, with an event."""
FIRST_RETRY: Final = 0.2
LAST_RETRY: Final = 10.0
FIRST_LOOK: Final = 0.002
"""Seconds until a transaction of the caller's is looked at again, doubled up to `FIRST_RETRY`."""
_MOST_SETTLED: Final = 100
TOO_LARGE: Final = Tombstone("too_large")
_NOT_RECORDABLE: Final = Tombstone("not_recordable")


class GivenUp(NamedTuple):
    """The work was not done, or nobody can say: a release that is still to be made.

    Attributes:
        to: as `Store.release` takes it.
        reason: a short word for why.
    """

    to: ReleaseTo
    reason: str


class Forgettable:
    """A transaction of the caller's that is waited for and not held: nobody but the caller keeps it open.

    One that its owner drops without an end is rolled back when it is collected, and has ended then.
    """

    __slots__ = ("_transaction",)

    def __init__(self, transaction: CallersTransaction) -> None:
        self._transaction = weakref.ref(transaction)

    @property
    def is_active(self) -> bool:
        """Whether it is still there, and neither committed nor rolled back yet."""
        transaction = self._transaction()
        return transaction is not None and transaction.is_active


@dataclass(slots=True)
class _Pending:
    claim: Claim
    outcome: Answer | Tombstone | GivenUp
    due: float
    gives_up: float
    tries: int
    late: bool  # another run holds the claim, so this one renews nothing and is no loss
    lease_ends: float = 0.0  # of a release: until then nobody but its owner can have freed the key
    locked_by: Forgettable | None = None
    looks_in: float = FIRST_LOOK  # at that transaction

    @property
    def is_held(self) -> bool:
        """Whether trying would mean to wait for a transaction of the caller's."""
        return self.locked_by is not None and self.locked_by.is_active

    def rest(self, now: float) -> None:
        """Sets when the next try is due."""
        self.due = now + min(FIRST_RETRY * 2.0**self.tries, LAST_RETRY, self.claim.lease / 6)

    def look_again(self, now: float) -> None:
        """Sets when the transaction that locks it is looked at next: soon, for it usually ends in a moment."""
        self.due = now + self.looks_in
        self.looks_in = min(self.looks_in * 2, FIRST_RETRY)


class _Came(Enum):
    """What one try came to."""

    DONE = "nothing is left to do"
    IN_THE_WAY = "another run is under way for the same request"
    AWAY = "the store did not take it"
    REFUSED = "nor did it, by an error that does not speak of the store"


_NOT_TAKEN: Final = (_Came.AWAY, _Came.REFUSED)


class Recordings:
    """What one engine still has to record. Times are of `monotonic`, in seconds."""

    def __init__(self, store: Store, emit: Announcer, monotonic: Callable[[], float]) -> None:
        self._store = store
        self._emit = emit
        self._now = monotonic
        self._pending: dict[bytes, _Pending] = {}
        self._settling = threading.Lock()
        self._settled: dict[bytes, bool] = {}  # joined ends of late, for who saw their records before

    def add_failed(self, claim: Claim, outcome: Answer | Tombstone, error: BaseException) -> None:
        """Takes over a recording that failed, or that an interrupt broke off.

        An error that speaks of the store leaves the answer as it is. Any other comes again at once with the
        same answer, and then the fact alone is recorded; or it was a signal's, and the answer gets through.
        """
        now = self._now()
        pending = _Pending(claim, outcome, now + FIRST_RETRY, now + claim.max_hold, tries=1, late=False)
        self._add(pending)  # before anything else: no interrupt from here on loses it
        self._emit(events.RecordingFailed, claim.identity, claim.attempt, type(error).__name__)
        if isinstance(error, IdempotencyError) or not isinstance(error, Exception):
            return
        came = self._record(pending, now)
        if came is _Came.REFUSED:
            pending.outcome = _NOT_RECORDABLE
            came = self._record(pending, now)
        if came is _Came.DONE:
            self._pending.pop(claim.token, None)

    def add_release(self, claim: Claim, given_up: GivenUp, lease_ends: float) -> None:
        """Takes over a release that failed: a doubt must not be forgotten, and a freed key not stay taken."""
        now = self._now()
        due, gives_up = now + FIRST_RETRY, now + claim.max_hold
        self._add(_Pending(claim, given_up, due, gives_up, tries=1, late=False, lease_ends=lease_ends))

    def add_held(self, transaction: Forgettable, claim: Claim, end: Answer | Tombstone | GivenUp) -> None:
        """Takes over an end that has to wait for the end of the caller's transaction."""
        now = self._now()
        pending = _Pending(claim, end, now, now + claim.max_hold, tries=0, late=False, locked_by=transaction)
        pending.look_again(now)
        self._add(pending)

    def settle_joined(self, token: bytes) -> bool:
        """Settles the end that waited for the caller's transaction, where that has ended.

        Returns:
            Whether this claim has been settled so, now or since its record was looked at: told once.
        """
        pending = self._pending.get(token)
        if pending is not None and pending.locked_by is not None and not pending.is_held:
            self._settle_joined(pending, self._now())
        return self._settled.pop(token, False)

    def _settle_joined(self, pending: _Pending, now: float) -> _Came:
        """One thread at a time: the end is made once, lest a second try find another run's claim."""
        token = pending.claim.token
        with self._emit.held(), self._settling:
            if token not in self._pending:
                return _Came.DONE
            came = self._record(pending, now)
            if came is _Came.DONE:
                if len(self._settled) >= _MOST_SETTLED:
                    self._settled.clear()
                self._settled[token] = True
                self._pending.pop(token, None)
            return came

    def record_now(self, token: bytes) -> bool:
        """Tries the one of this claim out of turn; whether there was one, and nothing is left to do for it."""
        pending = self._pending.get(token)
        if pending is None or pending.is_held:
            return False
        if self._record(pending, self._now(), renews=False) is not _Came.DONE:
            return False
        self._pending.pop(token, None)
        return True

    def holds(self, identity: Identity) -> bool:
        """Whether the end of a run of that operation is still to be recorded."""
        return any(pending.claim.identity == identity for pending in self._pending.copy().values())

    def add_late(self, claim: Claim, outcome: Answer | Tombstone) -> None:
        """Offers an outcome for the case that the run which took over does not finish."""
        now = self._now()
        due = now + min(FIRST_RETRY, claim.lease / 6)
        self._add(_Pending(claim, outcome, due, now + claim.max_hold, tries=1, late=True))

    def dues(self) -> list[float]:
        """When something is to be tried."""
        return [pending.due for pending in self._pending.copy().values()]

    def step(self, now: float, within: float) -> None:
        """Tries what is due, until the store turns out to be away, or to take longer than `within` seconds for
        it, since renewals wait for this: the rest then waits for its next moment.
        """
        for pending in self._pending.copy().values():
            if pending.due > now:
                continue
            last = now >= pending.gives_up
            if pending.is_held:
                pending.look_again(now)
                if last:
                    self._give_up(pending)
                continue
            if last and not pending.late and not isinstance(pending.outcome, GivenUp):
                # Perhaps it is the answer that the store cannot take: the fact alone may get through.
                pending.outcome = _NOT_RECORDABLE
            settle = self._record if pending.locked_by is None else self._settle_joined
            came = settle(pending, now)
            if came is _Came.DONE:
                self._pending.pop(pending.claim.token, None)
            elif last:
                self._give_up(pending)
            if (came in _NOT_TAKEN and not last) or self._now() >= now + within:
                return

    def finish(self, within: float) -> None:
        """Tries all a last time, for `within` seconds at the most, and gives the rest up."""
        ends = self._now() + within
        answers = True
        for pending in self._pending.copy().values():
            now = self._now()
            if pending.is_held:
                self._give_up(pending)
                continue
            came = self._record(pending, now, renews=False) if answers and now < ends else _Came.AWAY
            if came in _NOT_TAKEN and answers and isinstance(pending.outcome, Answer) and self._now() < ends:
                # As in `step`: a fact may fit where the answer does not, and there is no later try.
                pending.outcome = _NOT_RECORDABLE
                came = self._record(pending, now, renews=False)
            # A store that is away takes its whole time limit to say so: once is enough.
            answers = answers and came not in _NOT_TAKEN
            if came is _Came.DONE:
                self._pending.pop(pending.claim.token, None)
            else:
                self._give_up(pending)

    def _add(self, pending: _Pending) -> None:
        self._pending[pending.claim.token] = pending
        if len(self._pending) > MAX_PENDING:
            self._give_up(next(iter(self._pending.copy().values())))

    def _record(self, pending: _Pending, now: float, *, renews: bool = True) -> _Came:
        claim = pending.claim
        pending.tries += 1
        pending.rest(now)
        try:
            if isinstance(pending.outcome, GivenUp):
                return self._release(claim, pending.outcome, before_lease_end=now < pending.lease_ends)
            result = self._store.complete(claim, pending.outcome)
        except AnswerTooLarge:
            pending.outcome = TOO_LARGE
            return self._record(pending, now, renews=renews)
        except Exception as error:
            frees = isinstance(pending.outcome, GivenUp) and pending.outcome.to == "released"
            if renews and not pending.late and not frees:  # the end of its lease would free it as well
                self._renew(claim)
            return _Came.AWAY if isinstance(error, IdempotencyError) else _Came.REFUSED
        if isinstance(result, Stored):
            self._emit(events.RecordingRecovered, claim.identity, claim.attempt, pending.tries)
            if isinstance(pending.outcome, Tombstone):
                self._emit(events.AnswerNotKept, claim.identity, claim.attempt, pending.outcome.reason)
            return _Came.DONE
        if not pending.late:
            pending.late = True
            self._emit(events.LateFinish, claim.identity, claim.attempt, winner_given=False)
        record = result.record
        under_way = (
            isinstance(record, Record)
            and record.state is State.CLAIMED
            and record.fingerprint == claim.fingerprint
        )
        return _Came.IN_THE_WAY if under_way else _Came.DONE

    def _release(self, claim: Claim, given_up: GivenUp, *, before_lease_end: bool) -> _Came:
        # Another run's record, while this lease stands: the release had got through, and only its
        # acknowledgement got lost. After the lease it may as well have been taken over unfinished.
        if not self._store.release(claim, given_up.to, given_up.reason) and not before_lease_end:
            self._emit(events.LateFinish, claim.identity, claim.attempt, winner_given=False)
        elif given_up.to == "unknown":
            self._emit(events.OutcomeInDoubt, claim.identity, claim.attempt, given_up.reason)
        else:
            self._emit(events.Settled, claim.identity, claim.attempt, Settlement(given_up.to))
        return _Came.DONE

    def _renew(self, claim: Claim) -> None:
        try:
            self._store.renew(claim)
        except Exception:  # noqa: S110 - the next try of the recording says whether the store is back
            pass

    def _give_up(self, pending: _Pending) -> None:
        outcome = pending.outcome
        frees = isinstance(outcome, GivenUp) and outcome.to != "unknown"  # its lease ends by itself
        if self._pending.pop(pending.claim.token, None) is not None and not pending.late and not frees:
            claim = pending.claim
            self._emit(events.RecordingLost, claim.identity, claim.attempt, pending.tries)
