"""How an attempt ends: once, and as `machine.settle` says; what the store does not take goes to the keeper.

After the work is done a claim is never given up, even where recording fails: nothing may run it again.
What a transaction of the caller's has joined is settled after its end: it locks the record until then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from idemcore import events
from idemcore.errors import AnswerTooLarge, ConfigurationError
from idemcore.keeper import Keeper, Watched
from idemcore.machine import Ending, Settlement, settle
from idemcore.policy import Policy
from idemcore.record import Answer, Claim, Outcome, Record, State, Superseded, Tombstone, read_outcome
from idemcore.recordings import TOO_LARGE, Forgettable, GivenUp

if TYPE_CHECKING:
    from idemcore.stores.base import CallersTransaction, ReleaseTo

_process: object = object()
"""Stands for this process: another one in a forked child. To look at it costs less than to ask for the pid."""


def _in_forked_child() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_in_forked_child)


class Replay(NamedTuple):
    """`begin` found the operation done.

    Attributes:
        outcome: what it led to.
    """

    outcome: Outcome


class Settling(Watched):
    """The part of an attempt that settles it: what it ends by is a public method of `Attempt`."""

    __slots__ = ("_ended_by", "_handed_over", "_joined", "_keeper", "_policy", "_process", "_put_off")

    def __init__(self, keeper: Keeper, claim: Claim, policy: Policy, claimed_at: float) -> None:
        self._keeper = keeper
        self._claim = claim
        self._policy = policy
        self._ended_by: object = None
        self._handed_over = False
        self._put_off = False
        self._joined: CallersTransaction | None = None
        self._process = _process
        keeper.watch(self, claimed_at)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to settle here: it has ended, or it is a parent process's and not ours."""
        return self._ended_by is not None or self._process is not _process

    @property
    def put_off(self) -> bool:
        """Whether its end could not be written at once, and was left to the keeper."""
        return self._put_off

    def has_record(self) -> bool:
        """Whether the store says how it ended, so that nothing runs again; what was put off is tried first.

        It costs a look at the store, or as long as that takes to say that it is away.
        """
        claim, keeper = self._claim, self._keeper
        keeper.record_now(claim.token)
        try:
            record = keeper.store.get(claim.identity)
        except Exception:
            return False
        return isinstance(record, Record) and record.state not in (State.CLAIMED, State.RELEASED)

    @property
    def _inherited(self) -> bool:
        """Whether it came with a fork: then it is the parent process's to settle and to renew."""
        return self._process is not _process

    @property
    def is_held(self) -> bool:
        """Whether a transaction that this attempt has joined is still open, and so locks its record."""
        return self._joined is not None and self._joined.is_active

    def _require_unsettled(self) -> None:
        if self._inherited:
            raise ConfigurationError("This attempt is its parent process's to settle, which claimed it.")
        if self._ended_by is not None:
            raise ConfigurationError("This attempt is settled already; it ends once.")

    def _end(self, by: object, waits: bool) -> None:
        """Marks the attempt as ended, unless its end would have to wait for a transaction and must not."""
        if self._ended_by is not None or self._process is not _process:
            self._require_unsettled()  # which says why it is not
        if self._joined is not None and self._joined.is_active and not waits:
            raise ConfigurationError(
                "The transaction that this attempt has joined is still open and locks the record: commit it "
                "first, then complete the attempt. Nothing is lost: after the commit you still can."
            )
        self._ended_by = by

    def finish(
        self,
        outcome: Answer | Tombstone,
        make: Callable[[], Answer | Tombstone] | None = None,
        *,
        waits: bool = False,
        refused: bool = False,
    ) -> Replay | None:
        """Records how the work ended; returns as `Attempt.complete`.

        The work is done: once the attempt is marked as ended, nothing here may free the key again.

        An interrupt (a signal's exception, Ctrl-C) may strike between any two steps; what is known of the
        outcome by then goes to the keeper, which gets it recorded. One that strikes before the mark is as
        one that struck before the call.

        Args:
            outcome: what to record.
            make: makes it, where that may fail; `outcome` stands for it until then.
            waits: whether it may be left for the end of a transaction that has been joined.
            refused: whether it says that nothing was done, so that a rollback was right.
        """
        me = object()
        try:
            self._end(me, waits)
            if make is not None:
                try:
                    outcome = make()
                except Exception:
                    outcome = Tombstone("not_encodable")
                    self._record(outcome)
                    raise
            if self._joined is not None and not (waits or refused):
                self._look_for_mark()
            return self._record(outcome)
        except BaseException as error:
            if self._ended_by is me and not self._handed_over:
                self._hand_over(outcome, error)
            raise

    def _record(self, outcome: Answer | Tombstone) -> Replay | None:
        claim, keeper, transaction = self._claim, self._keeper, self._joined
        if transaction is not None and transaction.is_active:
            self._settle_after(transaction, outcome)
            return None
        try:
            result = keeper.store.complete(claim, outcome)
        except AnswerTooLarge:  # the store is there and never takes this one: the fact in its place
            return self._record(TOO_LARGE)
        except Exception as error:
            self._hand_over(outcome, error)
            return None
        self._handed_over = True
        keeper.unwatch(claim.token)
        if isinstance(result, Superseded):
            return self._superseded(result, outcome)
        ending = Ending.SUCCESS
        if isinstance(outcome, Tombstone):
            keeper.emit(events.AnswerNotKept, claim.identity, claim.attempt, outcome.reason)
            ending = Ending.UNKEEPABLE
        settlement = settle(ending, self._policy, claim.attempt)
        keeper.emit(events.Settled, claim.identity, claim.attempt, settlement)
        return None

    def _settle_after(self, transaction: CallersTransaction, end: Answer | Tombstone | GivenUp) -> None:
        forgettable = Forgettable(transaction)
        self._keeper.settle_after(forgettable, self._claim, end)
        self._handed_over = self._put_off = True
        self._joined = forgettable  # an attempt that has ended has no reason left to keep it from its end
        self._keeper.unwatch(self._claim.token)

    def _look_for_mark(self) -> None:
        """Says so where what was joined has left no mark: whatever was committed since may come a second time.

        The record tells it, not the transaction: a commit that looked failed may have arrived.
        """
        try:
            record = self._keeper.store.get(self._claim.identity)
        except Exception:
            return  # the recording, which comes next, says what is wrong with the store
        claim = self._claim
        if isinstance(record, Record) and record.state is State.CLAIMED and record.token == claim.token:
            self._keeper.emit(events.MarkRolledBack, claim.identity, claim.attempt)

    def _hand_over(self, outcome: Answer | Tombstone, error: BaseException) -> None:
        self._keeper.record_later(self._claim, outcome, error)
        self._handed_over = self._put_off = True
        self._keeper.unwatch(self._claim.token)

    def _superseded(self, result: Superseded, outcome: Answer | Tombstone) -> Replay | None:
        claim, record, winner = self._claim, result.record, None
        if isinstance(record, Record) and record.fingerprint == claim.fingerprint:
            winner = read_outcome(record)
            if record.state is State.CLAIMED:
                # Another run has taken over and may fail: then this outcome is the one to keep.
                self._keeper.offer(claim, outcome)
        self._keeper.emit(events.LateFinish, claim.identity, claim.attempt, winner_given=winner is not None)
        return Replay(winner) if winner is not None else None

    def _leave(self, ending: Ending, reason: str = "") -> None:
        """The work was not done, or nobody can say: the claim is given up as the machine says.

        An interrupt is met as in `finish`: a doubt must not be forgotten.
        """
        me = object()
        settlement = settle(ending, self._policy, self._claim.attempt)
        given_up = GivenUp(_RELEASES[settlement], storable(reason))
        try:
            self._end(me, True)
            self._release(given_up, settlement)
        except BaseException as error:
            if self._ended_by is me and not self._handed_over:
                self._release_later(given_up, error)
            raise

    def _release(self, given_up: GivenUp, settlement: Settlement) -> None:
        claim, keeper, transaction = self._claim, self._keeper, self._joined
        if transaction is not None and transaction.is_active:
            self._settle_after(transaction, given_up)
            return
        try:
            owned = keeper.store.release(claim, given_up.to, given_up.reason)
        except Exception as error:
            self._release_later(given_up, error)
            return
        self._handed_over = True
        keeper.unwatch(claim.token)
        if not owned:
            keeper.emit(events.LateFinish, claim.identity, claim.attempt, winner_given=False)
        elif settlement is Settlement.UNKNOWN:
            keeper.emit(events.OutcomeInDoubt, claim.identity, claim.attempt, given_up.reason)
        else:
            keeper.emit(events.Settled, claim.identity, claim.attempt, settlement)

    def _release_later(self, given_up: GivenUp, error: BaseException) -> None:
        claim, keeper = self._claim, self._keeper
        keeper.release_later(self, given_up)
        self._handed_over = self._put_off = True
        keeper.unwatch(claim.token)
        failed = events.RecordingFailed if given_up.to == "unknown" else events.ReleaseFailed
        keeper.emit(failed, claim.identity, claim.attempt, type(error).__name__)


_RELEASES: Final[Mapping[Settlement, ReleaseTo]] = {
    Settlement.UNKNOWN: "unknown",
    Settlement.FORGET: "deleted",
    Settlement.RETRY: "released",
}


def storable(reason: str) -> str:
    """What every store takes: a reason is for people, and must not be why its record cannot be made."""
    return reason.replace("\0", "").encode("utf-8", "replace").decode()[:200]
