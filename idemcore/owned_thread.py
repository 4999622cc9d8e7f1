"""A daemon thread that works for an owner who may be forgotten: it is held by its owner, never the other way.

The thread has a weak reference and a bell. The bell sounds when somebody has work for it, when it is to end,
and when its owner is gone, which the reference then says. Its put is atomic and takes no lock that an
interrupt could leave held, unlike an Event's set.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Bell: TypeAlias = "queue.SimpleQueue[None]"


class OwnedThread:
    """One thread at a time, started when it is first needed; a forked child makes its own anew.

    Args:
        name: of the thread.
        loop: its work, from the reference and the bell until it is to end.

    Attributes:
        bell: sounds by a put.
        runs: whether a thread was started, and has not said that it ended.
    """

    __slots__ = ("_loop", "_name", "_starting", "_thread", "bell", "runs")

    def __init__(self, name: str, loop: Callable[[weakref.ref[Any], Bell], None]) -> None:
        self._name = name
        self._loop = loop
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.bell: Final[Bell] = queue.SimpleQueue()
        self.runs = False

    @property
    def alive(self) -> bool:
        """Whether there is a thread now."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, owner: object) -> bool:
        """Starts it where it does not run; False where the system has no thread to give: ask again later."""
        with self._starting:
            if self.runs:
                return True
            bell = self.bell
            reference = weakref.ref(owner, lambda _: bell.put(None))
            thread = threading.Thread(target=self._loop, args=(reference, bell), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread, self.runs = thread, True
            return True

    def ended(self) -> None:
        """The thread says that it is gone: the next start makes another."""
        with self._starting:  # it may have gone before whoever started it has noted that it runs
            self.runs = False

    def end(self, within: float) -> None:
        """Sounds the bell, and waits for the thread to end, for so many seconds at the most."""
        self.bell.put(None)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=within)
