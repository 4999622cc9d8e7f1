"""Values that JSON gives back as they were: which do so by themselves, and a tagged form for some that do not.

The tagged form is small and closed: numbers, times, identifiers, bytes and plain containers. Nothing in it
names a class of the caller's, so reading it back can run no code of anybody's.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final
from uuid import UUID

_MAX_INT_BITS: Final = 14_000  # the interpreter turns longer ints neither into text nor back
_EXACT: Final = frozenset({str, bool, type(None)})
_TAG: Final = "$"


def is_exact_json(value: object) -> bool:
    """Whether JSON gives this value back with the same types: no tuple, no subclass, no non-text key."""
    if type(value) in _EXACT:
        return True
    if type(value) is int:
        return value.bit_length() <= _MAX_INT_BITS
    if type(value) is float:
        return isfinite(value)
    if type(value) is dict:
        for name, item in value.items():
            if type(name) is not str or not (type(item) in _EXACT or is_exact_json(item)):
                return False
        return True
    if type(value) is list:
        for item in value:  # noqa: SIM110 - a generator for each container costs as much as all the rest
            if type(item) not in _EXACT and not is_exact_json(item):
                return False
        return True
    return False


def tagged(value: Any) -> Any:
    """The value as plain JSON, with ``{"$": [type, content]}`` where JSON has no such type.

    Raises:
        TypeError: a type that is not among those that this form has.
    """
    kind = type(value)
    if kind is list:
        return [tagged(item) for item in value]
    if kind is dict and _TAG not in value and all(type(name) is str for name in value):
        return {name: tagged(member) for name, member in value.items()}
    if is_exact_json(value) and kind is not dict:
        return value
    if kind not in _WRITE:
        raise TypeError(f"{kind.__name__} has no tagged form")
    return {_TAG: [kind.__name__, _WRITE[kind](value)]}


def untagged(written: Any) -> Any:
    """The value that `tagged` wrote.

    Raises:
        ValueError, TypeError, KeyError: it did not write this.
    """
    if isinstance(written, list):
        return [untagged(item) for item in written]
    if not isinstance(written, dict):
        return written
    if _TAG not in written:
        return {name: untagged(member) for name, member in written.items()}
    name, content = written[_TAG]
    return _READ[name](content)


def _timedelta(content: Any) -> timedelta:
    days, seconds, microseconds = content
    return timedelta(days, seconds, microseconds)


def _tagged_items(value: Any) -> list[Any]:
    return [tagged(item) for item in value]


_WRITE: Final[dict[type, Callable[[Any], Any]]] = {
    Decimal: str,
    float: repr,  # what JSON has no number for: nan and the infinities
    UUID: str,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    bytes: lambda value: base64.b64encode(value).decode(),
    tuple: _tagged_items,
    set: _tagged_items,
    frozenset: _tagged_items,
    dict: lambda value: [[tagged(name), tagged(member)] for name, member in value.items()],
}

_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "Decimal": Decimal,
    "float": float,
    "UUID": UUID,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": _timedelta,
    "bytes": base64.b64decode,
    "tuple": lambda content: tuple(map(untagged, content)),
    "set": lambda content: set(map(untagged, content)),
    "frozenset": lambda content: frozenset(map(untagged, content)),
    "dict": lambda content: {untagged(name): untagged(member) for name, member in content},
}
