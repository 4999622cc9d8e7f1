"""One at a time, whatever strikes in between: a turn that is dropped gives itself back.

A lock that was acquired just before an exception from a signal handler stays locked for ever, since
nobody holds the place where it would be released. A turn is an object: wherever the only reference to it
is lost, the next one in the queue gets it. Should an interrupt strike even there, whoever waits in vain
finds that the last turn is nobody's, and makes the next one.
"""

from __future__ import annotations

import queue
import weakref
from collections.abc import Callable
from typing import Final

from idemcore.timed_get import timed_get


class Turns:
    """Hands out one turn at a time."""

    def __init__(self) -> None:
        self._free: Final[queue.SimpleQueue[Turn]] = queue.SimpleQueue()
        self._last: Callable[[], Turn | None] = lambda: None
        self._free.put(Turn(self))

    def wait(self, seconds: float) -> Turn | None:
        """The turn, to be given back; None where it did not come free in time."""
        try:
            turn = timed_get(self._free, seconds)
        except queue.Empty:
            if self._last() is not None:
                return None
            turn = Turn(self)
        self._last = weakref.ref(turn)
        return turn

    def _next(self) -> None:
        self._free.put(Turn(self))


class Turn:
    """The right to go ahead; give it back as soon as may be, and if nobody does, its end will."""

    _given_back = False
    _turns: Callable[[], Turns | None] = staticmethod(lambda: None)  # until the first line below has run

    def __init__(self, turns: Turns) -> None:
        self._turns = weakref.ref(turns)  # the queue holds its turns, and they must not hold it

    def give_back(self) -> None:
        """Lets the next one in; safe to repeat."""
        if not self._given_back:
            self._given_back = True
            turns = self._turns()
            if turns is not None:
                turns._next()

    def __del__(self) -> None:
        self.give_back()
