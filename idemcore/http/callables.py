"""Functions that a program hands to the HTTP side: plain ones, and what one returns is taken at its word.

A coroutine, which nobody here awaits, would count as yes to Python; so would the text ``"no"``.
"""

from __future__ import annotations

from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from idemcore.errors import ConfigurationError
from idemcore.unfinished import close_coroutine


def refuse_unfit(name: str, function: object) -> None:
    """Refuses a function whose call returns before it has run; what is not callable passes.

    Args:
        name: of the option, for the message.
        function: what was given.

    Raises:
        ConfigurationError: it is an `async def` or a generator function, or an object with such a call.
    """
    while isinstance(function, partial):
        function = function.func
    call: Any = getattr(type(function), "__call__", None)  # noqa: B004 - an object's own may be async
    for candidate in (function, call):
        if any(is_one(candidate) for is_one in (iscoroutinefunction, isasyncgenfunction, isgeneratorfunction)):
            raise ConfigurationError(
                f"{name} is a plain function: nobody awaits it, so an async or generator function would never "
                "have run when its answer is wanted."
            )


def verdict_of(name: str, said: object) -> bool:
    """What a function that answers yes or no has said.

    Raises:
        ConfigurationError: it said neither True nor False.
    """
    if isinstance(said, bool):
        return said
    close_coroutine(said)
    raise ConfigurationError(f"{name} returns True or False, not {type(said).__name__}.")
