"""Sweeps now and then, in a daemon thread of the engine's own, for programs that no cron looks after.

Times are drawn by lot, so that workers which start together do not sweep together. A sweep that fails is
announced and the next one comes in its turn. A forked child has no thread of its parent's; it begins anew
with its first claim.
"""

from __future__ import annotations

import atexit
import queue
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Final

from idemcore import events, forked
from idemcore.announcer import Announcer
from idemcore.owned_thread import Bell, OwnedThread
from idemcore.record import Swept
from idemcore.timed_get import timed_get

STOPS_WITHIN: Final = 5.0
"""Seconds that the end of a program waits for the batch in hand."""


class Sweeper(forked.Forkable):
    """One engine's background sweeps.

    Args:
        batches: sweeps, and gives each batch as it is done.
        emit: hears of what fails.
        every: seconds between two sweeps, on the average.
        chance: a number from 0 up to 1, drawn anew for each call; for tests.
    """

    def __init__(
        self,
        batches: Callable[[], Iterator[Swept]],
        emit: Announcer,
        every: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._batches = batches
        self._emit = emit
        self._every = every
        self._chance = chance
        self.start_in_child()
        forked.register(self)
        _sweepers.add(self)

    def start_in_child(self) -> None:
        """Without a thread, as after a fork."""
        self._thread = OwnedThread("idemcore-sweeper", _sweep)
        self._stopped = False

    @property
    def running(self) -> bool:
        """Whether there is a thread."""
        return self._thread.alive

    def start(self) -> None:
        """Starts the thread where it is not running, and the system has one to give."""
        if not self._stopped and not self._thread.start(self):
            self._emit(events.SweepFailed, "no thread could be started")

    def rest(self, *, first: bool) -> float:
        """Seconds until the next sweep: the first falls anywhere in the interval, for the sake of all
        workers that start together.
        """
        return self._every * (self._chance() if first else 0.5 + self._chance())

    def sweep(self) -> None:
        """One sweep, to its end or until it is told to stop."""
        try:
            for _ in self._batches():
                if self._stopped:
                    return
        except Exception as error:
            if not self._stopped:
                self._emit(events.SweepFailed, type(error).__name__)

    def stop(self) -> None:
        """Ends the thread, after the batch in hand."""
        self._stopped = True
        self._thread.end(STOPS_WITHIN)


def _sweep(reference: weakref.ref[Sweeper], bell: Bell) -> None:
    """The thread: holds its sweeper only while it works, so a forgotten engine can be collected."""
    first = True
    while (sweeper := reference()) is not None:
        rest = sweeper.rest(first=first)
        del sweeper
        first = False
        try:
            timed_get(bell, rest)
        except queue.Empty:
            sweeper = reference()
            if sweeper is not None:
                sweeper.sweep()
            del sweeper
        else:
            return  # stopped, or forgotten


_sweepers: weakref.WeakSet[Sweeper] = weakref.WeakSet()


def _at_exit() -> None:
    for sweeper in list(_sweepers):
        sweeper.stop()


atexit.register(_at_exit)
