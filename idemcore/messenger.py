"""Tells observers what a thread has to say that must never wait for them, such as the one that renews leases.

An observer or a log's handler may take as long as a mail server does. What such a thread says waits in a
bounded queue, and a daemon thread tells it in that order. Once the queue is full, what comes is dropped; how
many these were is logged as soon as somebody listens again.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from idemcore.owned_thread import Bell, OwnedThread

if TYPE_CHECKING:
    from idemcore.events import Event

MOST_WAITING: Final = 10_000
"""How many events may wait to be told, a few hundred bytes each."""
TOLD_WITHIN: Final = 5.0
"""Seconds that the end of a program waits for events that are still to be told."""

Tell: TypeAlias = "Callable[[Event], None]"

_log = logging.getLogger("idemcore")


class Messenger:
    """Of one keeper's thread. The queue holds who tells the events, so none is lost with a forgotten engine."""

    def __init__(self) -> None:
        waiting: queue.SimpleQueue[tuple[Tell, Event]] = queue.SimpleQueue()
        self._waiting = waiting
        self._thread = OwnedThread("idemcore-messenger", lambda owner, bell: _tell_all(waiting, owner, bell))
        self._dropped = 0
        self._said_dropped = 0
        self.finished = False

    def take(self, tell: Tell, event: Event) -> None:
        """Has `tell` called with the event soon; here and now only where no thread is there to do it."""
        if self.finished or not self._thread.start(self):
            tell(event)
        elif self._waiting.qsize() >= MOST_WAITING:
            self._dropped += 1
        else:
            self._waiting.put((tell, event))
            self._thread.bell.put(None)

    def say_dropped(self) -> None:
        """Logs how many events were dropped since it was last called."""
        new = self._dropped - self._said_dropped
        if new:
            self._said_dropped += new
            _log.error("observers took too long: %d events were not told", new)

    def finish(self) -> None:
        """Waits for what is still to be told, within `TOLD_WITHIN`, and ends the thread."""
        self.finished = True
        self._thread.end(TOLD_WITHIN)


def _tell_all(
    waiting: queue.SimpleQueue[tuple[Tell, Event]], owner: weakref.ref[Messenger], bell: Bell
) -> None:
    """The thread: holds nothing but the queue while it rests, so a forgotten engine can be collected."""
    while True:
        bell.get()
        while not waiting.empty():
            tell, event = waiting.get()
            try:
                tell(event)
            except BaseException:
                _log.exception("an observer ended on %s; it is ignored", type(event).__name__)
            del tell, event
        messenger = owner()
        if messenger is None:
            return
        messenger.say_dropped()
        if messenger.finished:
            return
        del messenger


class _Here(threading.local):
    """What holds for the thread that looks."""

    messenger: Messenger | None = None


_here: Final = _Here()


def messenger_here() -> Messenger | None:
    """Who tells what the calling thread has to say; None where it may do so itself."""
    return _here.messenger


def leave_telling_to(messenger: Messenger) -> None:
    """From now on the calling thread never waits for an observer."""
    _here.messenger = messenger
