"""Results that may stand for work still to come when the function has returned: they are no outcome to record.

A declared `async def` or generator function is refused before it runs. A plain function that returns what one
of these gave it is found out here, by its result. What it did before that nobody can tell from it.
"""

from __future__ import annotations

from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import Final

_USUAL: Final = frozenset((type(None), bool, int, float, str, bytes, dict, list, tuple))
"""The usual results, told without looking at what they can do."""


def is_awaited(value: object) -> bool:
    """Whether it is a coroutine, a task, a future, or an asynchronous iterator."""
    kind = type(value)
    return kind not in _USUAL and any(
        hasattr(kind, name) for name in ("__await__", "__anext__", "add_done_callback")
    )


def is_iterator(value: object) -> bool:
    """Whether it is read once only, and may run code as it is read: a generator, ``map(…)``, a file."""
    return hasattr(type(value), "__next__")


def close_coroutine(value: object) -> None:
    """Closes a coroutine that nobody has begun, lest Python warns that it was never awaited."""
    if isinstance(value, CoroutineType) and getcoroutinestate(value) == CORO_CREATED:
        value.close()
