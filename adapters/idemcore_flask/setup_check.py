"""Looks an app's routes over for protection that cannot work.

Both mistakes would otherwise be silent: a decorator above ``@app.post`` decorates what is registered
already, and a route without a guarded method is never guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flask import Flask

from idemcore import ConfigurationError
from idemcore.http import SAFE_METHODS
from idemcore_flask.protection import Settings, own_mark


def faults_of(app: Flask, settings: Settings) -> Mapping[str, str]:
    """What is wrong with the protection of the routes that an app has now, by endpoint.

    A view may be registered without the decorator that stands above its route, its routes may have no guarded
    method, or its options may not go with the app's.
    """
    reached = {id(function) for view in app.view_functions.values() for function in _layers(view)}
    methods: dict[str, set[str]] = {}
    for rule in app.url_map.iter_rules():
        methods.setdefault(rule.endpoint, set()).update(rule.methods or ())
    faults: dict[str, str] = {}
    for endpoint, view in app.view_functions.items():
        try:
            fault = _bare(settings, view, reached) or _never_guarded(settings, view, methods.get(endpoint))
        except ConfigurationError as error:  # of the app's options with the route's on top
            fault = f"has wrong options: {error}"
        if fault is not None:
            faults[endpoint] = f"The view {endpoint!r} {fault}"
    return faults


def _bare(settings: Settings, view: Callable[..., Any], reached: set[int]) -> str | None:
    if settings.everywhere is not None:
        return None  # where the whole app is protected, so is a view that was registered bare
    versions = settings.decorated.versions_of(view)
    if not versions or any(version is not None and id(version) in reached for version in versions):
        return None
    return (
        "is registered without its protection: @idempotency goes below @app.post or @app.route, so that the "
        "route gets the protected function."
    )


def _never_guarded(settings: Settings, view: Callable[..., Any], methods: set[str] | None) -> str | None:
    protection = own_mark(view)
    if (
        protection is None
        or methods is None
        or protection.mode == "exempt"
        or protection is settings.everywhere
    ):
        return None
    guarded = frozenset(settings.guard(protection).policy.methods)
    if methods & guarded:
        return None
    answers = f"is protected and answers {', '.join(sorted(methods))} only; "
    possible = sorted(methods - SAFE_METHODS)
    if not possible:
        return answers + "these are safe to repeat and never guarded. Remove its decorator."
    return answers + (
        f"guarded are {', '.join(sorted(guarded))}. Say methods={possible!r} in its decorator, or remove it."
    )


def _layers(view: Any) -> Iterator[Any]:
    """A view and what it wraps, by ``__wrapped__``."""
    while view is not None:
        yield view
        view = getattr(view, "__wrapped__", None)
