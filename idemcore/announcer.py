"""Telling observers: each gets every event, none is in the way, and what nobody would read is never made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

from idemcore.events import Event, Observer, log_events

P = ParamSpec("P")

_log = logging.getLogger("idemcore")


class Announcer:
    """Tells observers what happened; one that raises is logged.

    Called with an event's class and fields rather than an event, so that nothing is made where the only
    observer is the log and its level says that nobody reads it.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)
        self._only_logs = self._observers == (log_events,)

    def __call__(self, kind: Callable[P, Event], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Makes the event of class `kind` from its fields and hands it to each observer."""
        made: Any = kind  # a class of events, whose constructor P describes
        if self._only_logs and not _log.isEnabledFor(made.level):
            return
        event = kind(*args, **kwargs)
        for observer in self._observers:
            try:
                observer(event)
            except Exception:
                _log.exception("an observer raised on %s; it is ignored", type(event).__name__)
