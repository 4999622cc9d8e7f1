"""Looks an app's routes over for protection that cannot work.

These mistakes would otherwise be silent: a decorator above ``@app.post`` decorates what is registered
already, and a method of a decorated view that is none of the guarded ones runs on each retry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flask import Flask

from idemcore import ConfigurationError
from idemcore.http import SAFE_METHODS
from idemcore_flask.protection import Protection, Settings, method_mark, own_mark


def faults_of(app: Flask, settings: Settings) -> Mapping[str, str]:
    """What is wrong with the protection of the routes that an app has now, by endpoint.

    A view may be registered without the decorator that stands above its route, it may answer a method that is
    not guarded, or its options may not go with the app's.
    """
    reached = {id(function) for view in app.view_functions.values() for function in _layers(view)}
    methods: dict[str, set[str]] = {}
    for rule in app.url_map.iter_rules():
        methods.setdefault(rule.endpoint, set()).update(rule.methods or ())
    faults: dict[str, str] = {}
    for endpoint, view in app.view_functions.items():
        try:
            fault = _bare(settings, view, reached) or _unguarded(settings, view, methods.get(endpoint, set()))
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


def _unguarded(settings: Settings, view: Callable[..., Any], methods: set[str]) -> str | None:
    """What is wrong with a decorator that guards too little, on the view or on a method of its class."""
    left = set(methods)
    for method in sorted(methods):
        mark = method_mark(view, method)
        if mark is not None:
            left.discard(method)
            fault = _fault_of(settings, mark, {method}, {method})
            if fault is not None:
                return fault
    own = own_mark(view)
    if own is None or own is settings.everywhere:
        return None
    return _fault_of(settings, own, methods, left)


def _fault_of(settings: Settings, mark: Protection, answered: set[str], left: set[str]) -> str | None:
    """What is wrong with a decorator.

    Args:
        settings: of the app.
        mark: the decorator's.
        answered: the methods that it stands on.
        left: those of them that have no decorator of their own.
    """
    if mark.mode == "exempt" or not answered:
        return None
    guarded = frozenset(settings.guard(mark).policy.methods)
    possible = sorted(answered - SAFE_METHODS)
    if not answered & guarded:
        answers = f"is protected and answers {', '.join(sorted(answered))} only; "
        if not possible:
            return answers + "these are safe to repeat and never guarded. Remove its decorator."
        return answers + (
            f"guarded are {', '.join(sorted(guarded))}. Say methods={possible!r} in its decorator, or "
            "remove it."
        )
    bare = ", ".join(sorted(left - guarded - SAFE_METHODS))
    if not bare or "methods" in mark.options:  # a decorator that names its methods means what it leaves out
        return None
    return (
        f"is protected and answers {bare} too, which would run on each retry. Say methods={possible!r} in its "
        f"decorator, or methods={sorted(answered & guarded)!r} if that is meant."
    )


def _layers(view: Any) -> Iterator[Any]:
    """A view and what it wraps, by ``__wrapped__``."""
    while view is not None:
        yield view
        view = getattr(view, "__wrapped__", None)
