"""Keeps claims alive while user code runs: one daemon thread an engine, which gets late recordings through too.

A lease is renewed first when a third of it has passed, then every sixth until one renewal succeeds. The
store caps a claim at `max_hold`; a run that goes on beyond it may be joined by a second one, which the
event `LeaseEnded` reports. Attempts are held weakly: one that nobody holds any more renews nothing, so
its lease ends by itself. The thread starts when it is first needed, and `step` does all the work of one
moment, so that tests need no thread and no waiting. What the thread has to tell, a messenger tells: no
observer is waited for.
"""

from __future__ import annotations

import atexit
import logging
import queue
import weakref
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final

from idemcore import events, forked
from idemcore.announcer import Announcer
from idemcore.messenger import Messenger, leave_telling_to
from idemcore.owned_thread import Bell, OwnedThread
from idemcore.record import Answer, Claim, Tombstone
from idemcore.recordings import Forgettable, GivenUp, Recordings
from idemcore.timed_get import timed_get

if TYPE_CHECKING:
    from idemcore.identity import Identity
    from idemcore.stores.base import Store

LONGEST_REST: Final = 600.0
STOPS_WITHIN: Final = 10.0
"""Seconds that the end of a program waits for recordings that are still to be made."""

_log = logging.getLogger("idemcore")


class Watched:
    """What claims are kept alive for, an attempt; the keeper notes on it when its claim is due.

    So a claim costs one weak reference to watch. What is noted here belongs to the keeper alone.
    """

    __slots__ = ("__weakref__", "_claim", "_due", "_lease_ends")

    _claim: Claim
    _due: float
    _lease_ends: float

    @property
    def settled(self) -> bool:
        """Whether it has ended."""
        raise NotImplementedError

    @property
    def is_held(self) -> bool:
        """Whether a transaction of the caller's locks its record now, so that a renewal would wait for it."""
        raise NotImplementedError


class Keeper(forked.Forkable):
    """The engine's clockwork. Times are of `monotonic`, in seconds.

    Attributes:
        store: where the claims stand.
        emit: tells the engine's observers.
    """

    def __init__(self, store: Store, emit: Announcer, monotonic: Callable[[], float]) -> None:
        self.store: Final = store
        self.emit: Final = emit
        self._now = monotonic
        self.starts_too: Callable[[], None] | None = None
        """Called beside each start of the thread: the first of a process, a forked child's included."""
        self.start_in_child()
        forked.register(self)
        _keepers.add(self)

    def start_in_child(self) -> None:
        """Nothing to keep, and no thread: after a fork the claims are the parent's, and so is its thread."""
        # By token. No lock: of several threads each adds and removes its own tokens, by one step of the
        # interpreter, and whoever goes through all of them goes through a copy, which is one step too.
        self._watched: dict[bytes, weakref.ref[Watched]] = {}
        self._recordings = Recordings(self.store, self.emit, self._now)
        self._messenger = messenger = Messenger()
        self._thread = OwnedThread("idemcore-keeper", lambda owner, bell: _keep(messenger, owner, bell))
        self._wakes_at = inf
        self._shortest = LONGEST_REST * 3
        self._stopped = False

    def watch(self, attempt: Watched, claimed_at: float) -> None:
        """Renews the attempt's claim until it is unwatched; `claimed_at` is from before the claim was sent."""
        claim = attempt._claim
        lease = claim.lease
        attempt._due = due = claimed_at + lease / 3
        attempt._lease_ends = claimed_at + lease
        if lease < self._shortest:
            self._shortest = lease
        self._watched[claim.token] = weakref.ref(attempt)
        if (due < self._wakes_at or not self._thread.runs) and not self._rouse():
            self.emit(events.RenewalFailed, claim.identity, claim.attempt, "no thread could be started")

    def unwatch(self, token: bytes) -> None:
        """The attempt has ended."""
        self._watched.pop(token, None)

    def renewed(self, attempt: Watched, left: float) -> None:
        """The attempt renewed by itself; `left` seconds remain."""
        self._schedule(attempt, self._now(), left)

    def record_later(self, claim: Claim, outcome: Answer | Tombstone, error: BaseException) -> None:
        """Takes over a recording that failed, or that an interrupt broke off; see `Recordings`."""
        try:
            self._recordings.add_failed(claim, outcome, error)
        finally:
            self._rouse()

    def release_later(self, attempt: Watched, given_up: GivenUp) -> None:
        """Takes over a release that failed, or that an interrupt broke off; see `Recordings`."""
        self._recordings.add_release(attempt._claim, given_up, attempt._lease_ends)
        self._rouse()

    def settle_after(self, transaction: Forgettable, claim: Claim, end: Answer | Tombstone | GivenUp) -> None:
        """Settles the claim when that transaction has ended, which locks its record; see `Recordings`."""
        self._recordings.add_held(transaction, claim, end)
        self._rouse()

    def record_now(self, token: bytes) -> bool:
        """Before another run takes that claim over: whether its outcome was waiting here, and is recorded."""
        return self._recordings.record_now(token)

    def knows(self, identity: Identity) -> bool:
        """Whether a run of that operation is under way in this engine, or its end still to be recorded."""
        # The claims first: one that ends meanwhile has its outcome handed over before it is unwatched.
        return any(attempt._claim.identity == identity for attempt in self._held()) or (
            self._recordings.holds(identity)
        )

    def settle_joined(self, token: bytes) -> bool:
        """Before another run is turned away: whether that claim's end, held by a transaction, is settled."""
        return self._recordings.settle_joined(token)

    def offer(self, claim: Claim, outcome: Answer | Tombstone) -> None:
        """Keeps an outcome that came too late, for the case that the run which took over fails."""
        self._recordings.add_late(claim, outcome)
        self._rouse()

    def step(self) -> float:
        """Does what is due now; returns the moment of the next duty."""
        now = self._now()
        due = [attempt for attempt in self._held() if attempt._due <= now]
        # Where the store is slow, others come due meanwhile whose lease ends before: what is not done in time
        # waits for the next look at all.
        until = now + self._shortest / 6
        in_turn = iter(sorted(due, key=lambda attempt: attempt._lease_ends))
        for attempt in in_turn:
            self._renew(attempt)
            if self._now() >= until:
                break
        for attempt in in_turn:
            self._tell_if_over(attempt)
        self._recordings.step(self._now(), self._shortest / 6)
        # The thread rests no longer than the first renewal of the shortest lease it has seen, so that a new
        # claim of that lease or a longer one need not rouse it. An idle one rests longer each time.
        if not self._watched:
            self._shortest = min(self._shortest * 2, LONGEST_REST * 3)
        dues = [now + self._shortest / 3, *self._recordings.dues()]
        dues += [attempt._due for attempt in self._held()]
        return min(dues)

    def stop(self) -> None:
        """Tries what is to be recorded a last time, within `STOPS_WITHIN`, and ends the thread."""
        self._stopped = True
        self._thread.end(STOPS_WITHIN / 2)
        self._recordings.finish(STOPS_WITHIN)
        self._messenger.finish()

    def _held(self) -> list[Watched]:
        """The attempts that are watched and that somebody holds; the others are watched no more."""
        held = []
        for token, reference in self._watched.copy().items():
            attempt = reference()
            if attempt is not None:
                held.append(attempt)
            else:
                self._watched.pop(token, None)
        return held

    def _tell_if_over(self, attempt: Watched) -> None:
        """Says, once, that a lease is over whose renewal still has to wait for others."""
        claim, now = attempt._claim, self._now()
        if attempt._due < attempt._lease_ends < now and not (attempt.is_held or attempt.settled):
            attempt._due = now
            self.emit(events.LeaseEnded, claim.identity, claim.attempt, "not_renewed")

    def _renew(self, attempt: Watched) -> None:
        claim, now = attempt._claim, self._now()
        if attempt.is_held:  # nobody else can have the record either
            attempt._due = now + claim.lease / 6
            return
        try:
            left = self.store.renew(claim)
        except Exception as error:
            self.emit(events.RenewalFailed, claim.identity, claim.attempt, type(error).__name__)
            # Its lease has ended since the last try, which is when to say so, and only then.
            if attempt._due <= attempt._lease_ends <= now:
                self.emit(events.LeaseEnded, claim.identity, claim.attempt, "not_renewed")
            attempt._due = now + claim.lease / 6
            return
        if left is not None and left > 0:
            # Nobody has taken it over. At max_hold it is due at its very end, and that is no delay.
            if attempt._due < attempt._lease_ends < now:
                self.emit(events.RenewalFailed, claim.identity, claim.attempt, "sent_late")
            self._schedule(attempt, now, left)
            return
        self._watched.pop(claim.token, None)
        if not attempt.settled:  # else it ended while the renewal was under way
            reason = "lost" if left is None else "max_hold"
            self.emit(events.LeaseEnded, claim.identity, claim.attempt, reason)

    def _schedule(self, attempt: Watched, now: float, left: float) -> None:
        attempt._lease_ends = now + left
        # Less than a lease was given: max_hold caps it, so there is nothing more to win before its end.
        lease = attempt._claim.lease
        attempt._due = now + (left if left < lease * 0.99 else lease / 3)

    def _rouse(self) -> bool:
        """Rings for a thread that runs or is started now; False if none can be: the next claim tries again."""
        self._thread.bell.put(None)
        if self._thread.runs or self._stopped:
            return True
        if not self._thread.start(self):
            return False
        if self.starts_too is not None:
            self.starts_too()
        return True

    def round(self) -> float | None:
        """The thread's work between two rests; returns seconds to rest, None once stopped."""
        self._wakes_at = inf  # whoever registers while the round goes on rings for the next one
        next_due = self.step()
        self._wakes_at = next_due
        return None if self._stopped else max(0.0, next_due - self._now())

    def thread_ended(self) -> None:
        """The thread is gone; the next claim starts another."""
        self._thread.ended()


def _keep(messenger: Messenger, reference: weakref.ref[Keeper], bell: Bell) -> None:
    """The thread: holds its keeper only while it works, so a forgotten engine can be collected."""
    leave_telling_to(messenger)  # an observer that hangs must cost no claim
    while (keeper := reference()) is not None:
        try:
            while True:
                bell.get_nowait()
        except queue.Empty:
            pass
        try:
            rest = keeper.round()
        except BaseException:
            keeper.thread_ended()
            _log.exception("the thread that renews leases broke; the next claim starts another")
            return
        del keeper
        if rest is None:
            return
        try:
            timed_get(bell, rest)
        except queue.Empty:
            continue


_keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _at_exit() -> None:
    for keeper in list(_keepers):
        keeper.stop()


atexit.register(_at_exit)
