"""What an app knows of one of its routes: the guard of each method; worked out once, not by request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from flask import Flask

from idemcore import ConfigurationError
from idemcore.http import Guard
from idemcore_flask.dispatch import protected
from idemcore_flask.protection import Settings, method_mark, own_mark
from idemcore_flask.setup_check import faults_of

_log: Final = logging.getLogger("idemcore")


class Route:
    """One endpoint's view and who guards it.

    Attributes:
        view: the function that the endpoint is registered with.
        guards: by method; a method that is not there goes straight through.
    """

    __slots__ = ("guards", "view")

    def __init__(self, view: Callable[..., Any], settings: Settings) -> None:
        own = own_mark(view)
        if own is None and settings.everywhere is not None:
            own = settings.everywhere
            view = protected(own, view)
        self.view = view
        self.guards: dict[str, Guard] = {}
        if own is not None and own.mode != "exempt":
            guard = settings.guard(own)
            self.guards = dict.fromkeys(guard.methods, guard)
        for name in getattr(getattr(view, "view_class", None), "methods", None) or ():
            mark, method = method_mark(view, name), name.upper()
            if mark is not None:  # it counts before the one on the whole view
                self.guards.pop(method, None)
                if mark.mode != "exempt" and method in (guard := settings.guard(mark)).methods:
                    self.guards[method] = guard


class Routes:
    """Those of one app, by their endpoints; its app-wide protection is put around a view here.

    All are looked over when the first request comes, for nothing in Flask says sooner that an app has all of
    its routes. What is wrong is its own endpoint's fault: requests to others, health checks among them, are
    served.
    """

    def __init__(self, app: Flask, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._known: dict[str, Route] = {}
        self._faults: Mapping[str, str] | None = None
        self._looking_over = threading.Lock()

    def of(self, endpoint: str) -> Route | None:
        """The route; None where the endpoint has no view.

        Raises:
            ConfigurationError: its protection cannot work, see `setup_check`.
        """
        view = self._app.view_functions.get(endpoint)
        route = self._known.get(endpoint)
        if view is None or (route is not None and route.view is view):
            return route if view is not None else None
        fault = self._looked_over().get(endpoint)
        if fault is not None:
            raise ConfigurationError(fault)
        route = self._known[endpoint] = Route(view, self._settings)
        self._app.view_functions[endpoint] = route.view
        return route

    def _looked_over(self) -> Mapping[str, str]:
        new: Mapping[str, str] = {}
        with self._looking_over:
            if self._faults is None:
                self._faults = new = faults_of(self._app, self._settings)
            faults = self._faults
        for fault in new.values():  # a log's handler is free to take its time, and to call the app
            _log.error("%s Until then each request to it fails.", fault)
        return faults
