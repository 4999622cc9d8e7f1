"""A clock that moves when a test says so: hand it to a store and to the engine instead of the real one."""

from __future__ import annotations

import threading


class FakeClock:
    """Seconds that pass on demand only.

    ``clock()`` reads it, ``clock.sleep(seconds)`` lets that much pass at once, ``clock.advance(seconds)``
    likewise. Safe to share between threads.

        clock = FakeClock()
        idem = Engine(MemoryStore(clock=clock), monotonic=clock, sleep=clock.sleep)

    Args:
        start: what it shows first.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """The time, in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets `seconds` pass; negative ones turn it back, as a wall clock may be."""
        with self._lock:
            self._now += seconds

    def sleep(self, seconds: float) -> None:
        """What a caller does who would sleep: time passes, and nobody waits."""
        self.advance(max(0.0, seconds))
