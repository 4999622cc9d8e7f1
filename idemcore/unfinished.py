"""Results whose work is still to be done when the function has returned: they are no outcome to record.

A declared `async def` or generator function is refused before it runs. A plain function that returns what one
of these gave it is found out here, by its result.
"""

from __future__ import annotations

from enum import Enum
from inspect import CORO_CREATED, getcoroutinestate
from itertools import starmap
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Final

_FINISHED: Final = frozenset((type(None), bool, int, float, str, bytes, dict, list, tuple))
"""The usual results, told without looking at what they can do."""

_LAZY: Final = frozenset((GeneratorType, AsyncGeneratorType, map, filter, starmap))
"""Iterators that run code as they are read. Of others nobody knows: the work may be done that filled them."""


class Unfinished(Enum):
    """What is known of the work behind such a result."""

    DROPPED = "it runs only where somebody awaits or reads the result, which now nobody does"
    UNDER_WAY = "it may be under way elsewhere, such as in a task or a thread"


def unfinished(value: object) -> Unfinished | None:
    """What a function's result says of its work; None where that is done as far as can be seen.

    A coroutine that nobody has begun is closed, lest Python warns that it was never awaited.
    """
    kind = type(value)
    if kind in _FINISHED:
        return None
    if isinstance(value, CoroutineType) and getcoroutinestate(value) == CORO_CREATED:
        value.close()
        return Unfinished.DROPPED
    if kind in _LAZY:
        return Unfinished.DROPPED
    if any(hasattr(kind, name) for name in ("__await__", "__anext__", "add_done_callback")):
        return Unfinished.UNDER_WAY
    return None
