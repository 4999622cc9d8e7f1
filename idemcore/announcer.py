"""Telling observers: each gets every event, none is in the way, and what nobody would read is never made."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, ParamSpec

from idemcore.events import Event, Observer, log_events
from idemcore.messenger import messenger_here

P = ParamSpec("P")

_log = logging.getLogger("idemcore")


class _Held(threading.local):
    """The events that the looking thread holds back; None where it holds none."""

    events: list[Event] | None = None


class Announcer:
    """Tells observers what happened; one that raises is logged.

    Called with an event's class and fields rather than an event, so that nothing is made where the only
    observer is the log and its level says that nobody reads it. A thread that must not wait leaves the telling
    to a messenger.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)
        self._only_logs = self._observers == (log_events,)
        self._held = _Held()

    def __call__(self, kind: Callable[P, Event], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Makes the event of class `kind` from its fields and hands it to each observer."""
        made: Any = kind  # a class of events, whose constructor P describes
        if self._only_logs and not _log.isEnabledFor(made.level):
            return
        event = kind(*args, **kwargs)
        if self._held.events is not None:
            self._held.events.append(event)
        else:
            self._pass_on(event)

    @contextmanager
    def held(self) -> Generator[None]:
        """Holds the calling thread's events back until the end of the block, for whoever has a lock in it.

        An observer may call the engine, which may want that lock.
        """
        if self._held.events is not None:
            yield
            return
        events: list[Event] = []
        self._held.events = events
        try:
            yield
        finally:
            self._held.events = None
            for event in events:
                self._pass_on(event)

    def _pass_on(self, event: Event) -> None:
        messenger = messenger_here()
        if messenger is not None:
            messenger.take(self._tell, event)
        else:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:
                _log.exception("an observer raised on %s; it is ignored", type(event).__name__)
