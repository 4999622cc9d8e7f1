"""Who waits for a run in progress: so many at a time and no more, for so long, and never a run for itself.

Somebody who waits holds a thread. Were their number not bounded, the retries of one slow operation would
take every thread of a server, the one included that its answer has to come through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from idemcore import forked
from idemcore.current import runs_within
from idemcore.identity import Identity
from idemcore.policy import Policy

MAX_WAITERS: Final = 8
_FIRST_PAUSE, _LAST_PAUSE = 0.01, 0.25


class WaitingRoom(forked.Forkable):
    """The places of one engine.

    Args:
        places: how many may wait at a time.
        monotonic: the clock, in seconds.
        sleep: lets seconds pass.
    """

    def __init__(self, places: int, monotonic: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._size = places
        self._now = monotonic
        self._sleep = sleep
        self.start_in_child()
        forked.register(self)

    def start_in_child(self) -> None:
        """All places are free: those who wait did not come along."""
        self._places = threading.Semaphore(self._size)

    def enter(self, identity: Identity, policy: Policy) -> Wait | None:
        """A place to wait in, to be left again; None where this caller is to be refused at once.

        That is where the policy has nobody wait, where the places are taken, and where the run in progress
        is the caller's own, or one around it: it would wait for itself. (Where that cannot be told, the
        wait ends with its time.)
        """
        if not policy.wait or runs_within(identity):
            return None
        if not self._places.acquire(blocking=False):
            return None
        return Wait(self._places.release, self._now, self._sleep, policy.wait.total_seconds())


class Wait:
    """One caller's wait."""

    def __init__(
        self,
        leave: Callable[[], None],
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        seconds: float,
    ) -> None:
        self.leave: Final = leave
        self._now = monotonic
        self._sleep = sleep
        self._ends = monotonic() + seconds
        self._pause = _FIRST_PAUSE

    def goes_on(self) -> bool:
        """Waits a little longer each time; False once its time is up."""
        left = self._ends - self._now()
        if left <= 0:
            return False
        self._sleep(min(self._pause, left))
        self._pause = min(self._pause * 1.5, _LAST_PAUSE)
        return True
