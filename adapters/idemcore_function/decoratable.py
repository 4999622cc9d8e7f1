"""What can be decorated, and what its operation is called: a name that is no other function's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from idemcore import ConfigurationError, Engine
from idemcore.module_name import lasting_name


class _Origin(NamedTuple):
    """Where a function was written down."""

    qualified_name: str
    module: str
    file: str

    def is_that_of(self, other: _Origin) -> bool:
        """One function keeps its name, and its module where it is made anew by a reload or in a notebook's
        cell, or its file where it is imported under two names.
        """
        return self.qualified_name == other.qualified_name and (
            self.module == other.module or self.file == other.file
        )


_named: Final[WeakKeyDictionary[Engine, dict[str, _Origin]]] = WeakKeyDictionary()
"""Which function has each name, by engine. None is kept alive by it."""


def namespace_of(function: Callable[..., object]) -> str:
    """The default name of a function's operation, ``module:qualified.name``.

    A script's module is called after its file, for its own name is ``__main__`` whatever script it is.

    Raises:
        ConfigurationError: the function has no name of its own, so others could meet it under that name.
    """
    name = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", "")
    if not name or not module or name.endswith("<lambda>"):
        raise ConfigurationError(
            "This callable has no name of its own; give it one with namespace='…', and keep it for as long "
            "as its records are kept."
        )
    return f"{lasting_name(module)}:{name}"


def reserve_name(engine: Engine, namespace: str, function: Callable[..., object]) -> None:
    """Gives a name to one function only: two would share their records, and one get the other's results.

    A function that is made inside of another one, in a test or a factory, goes without: nobody can tell whether
    the one before it still is.

    Raises:
        ConfigurationError: another function has this name on this engine.
    """
    while isinstance(function, partial):
        function = function.func
    written = inspect.unwrap(function)
    if not inspect.isroutine(written):
        written = type(written).__call__
    origin = _Origin(
        getattr(written, "__qualname__", ""),
        getattr(written, "__module__", None) or "",
        getattr(getattr(written, "__code__", None), "co_filename", ""),
    )
    if "<" in origin.qualified_name:  # <locals>, <lambda>
        return
    other = _named.setdefault(engine, {}).setdefault(namespace, origin)
    if not origin.is_that_of(other):
        raise ConfigurationError(
            f"{other.module}:{other.qualified_name} has the namespace {namespace!r} on this engine: the two "
            "would share their records, and one be given the other's results. Give each its own; where that is "
            "this function before it was renamed, start the process anew."
        )


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
