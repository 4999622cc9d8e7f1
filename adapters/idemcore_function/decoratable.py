"""What can be decorated: functions whose work is done when they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from idemcore import ConfigurationError


def is_task(function: object) -> bool:
    """Whether it can be sent to a queue, as a task of Celery's or a job of RQ's."""
    return any(callable(getattr(function, name, None)) for name in ("apply_async", "delay"))


def refuse_what_does_not_return(function: Callable[..., object]) -> None:
    """Only what returns when its work is done can be recorded.

    Raises:
        ConfigurationError: it is async, a generator function, a task of a queue, or no function at all.
    """
    if isinstance(function, (classmethod, staticmethod)):
        raise ConfigurationError(
            f"Write @{type(function).__name__} above @idempotent, which decorates the function itself."
        )
    if not callable(function) or isinstance(function, type):
        raise ConfigurationError("@idempotent decorates a function.")
    if inspect.ismethod(function):
        raise ConfigurationError(
            "@idempotent decorates a method where its class defines it: of a bound one it cannot see the "
            "object, so all objects would share their keys."
        )
    if is_task(function):
        raise ConfigurationError(
            "This is a task of a queue, whose worker would run it without @idempotent: write @app.task above "
            "@idempotent, so that what the queue calls is the protected function."
        )
    unwrapped = inspect.unwrap(function)
    call = getattr(unwrapped, "__call__", None)  # noqa: B004 - an object's own, which may be async
    for candidate in (unwrapped, call):
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise ConfigurationError(
                "@idempotent cannot decorate an async function: calling it returns before the work is done. "
                "Decorate the function that does the work, or use `with idem.begin(…)` around the await."
            )
        if inspect.isgeneratorfunction(candidate):
            raise ConfigurationError(
                "@idempotent cannot decorate a generator function: its work is done while the caller iterates. "
                "Return a list, or decorate what is done for each item."
            )
