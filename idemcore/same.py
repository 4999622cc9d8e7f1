"""Whether a value that came back is the one that went in: equal, and of the same type at every level.

``==`` alone does not tell: ``1 == True == 1.0``, and ``Decimal("1.0") == Decimal("1.00")``.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from operator import eq
from typing import Any, Final
from uuid import UUID


def same(given: Any, back: Any) -> bool:
    """Compares two values, neither of which holds itself. Of datetimes the offset counts, not the zone."""
    kind = type(given)
    if kind is not type(back):
        return False
    compare = _COMPARE.get(kind) or _comparison(kind)
    return bool(compare(given, back))


def _has_fields_set(kind: type) -> bool:
    return hasattr(kind, "model_fields") and hasattr(kind, "__pydantic_validator__")


is_model: Callable[[type], bool] = lru_cache(maxsize=1024)(_has_fields_set)
"""Whether this is a class of pydantic models; pydantic need not be loaded to tell."""


def _find_comparison(kind: type) -> Callable[[Any, Any], object]:
    """How values of a type are compared that is not built in."""
    for base in (datetime, dict, list, tuple, deque, set, frozenset, Decimal, float):
        if issubclass(kind, base):
            return _COMPARE[base]
    if dataclasses.is_dataclass(kind):
        return _dataclasses
    return _models if is_model(kind) else eq


_comparison: Callable[[type], Callable[[Any, Any], object]] = lru_cache(maxsize=1024)(_find_comparison)


def _floats(given: float, back: float) -> bool:
    return given == back or (given != given and back != back)


def _decimals(given: Decimal, back: Decimal) -> bool:
    return str(given) == str(back)


def _sequences(given: Any, back: Any) -> bool:
    return len(given) == len(back) and all(map(same, given, back))


def _deques(given: Any, back: Any) -> bool:
    return given.maxlen == back.maxlen and _sequences(given, back)


def _dicts(given: dict[Any, Any], back: dict[Any, Any]) -> bool:
    return _sequences(list(given), list(back)) and _members(given, back)


def _members(given: dict[Any, Any], back: dict[Any, Any]) -> bool:
    """Whether what is in `back` is in `given` too; both have the same names."""
    for name, returned in back.items():
        item = given[name]
        kind = type(item)
        if kind in _PLAIN:  # compared here: a call for each would be most of the cost
            if kind is not type(returned) or item != returned:
                return False
        elif not same(item, returned):
            return False
    return True


def _sets(given: Any, back: Any) -> bool:
    members = {item: item for item in back}
    return len(given) == len(back) and all(item in members and same(item, members[item]) for item in given)


def _datetimes(given: datetime, back: datetime) -> bool:
    return given == back and given.utcoffset() == back.utcoffset()


def _dataclasses(given: Any, back: Any) -> bool:
    names = [field.name for field in dataclasses.fields(given)]
    return all(same(getattr(given, name), getattr(back, name)) for name in names)


def _models(given: Any, back: Any) -> bool:
    fields, returned = given.__dict__, back.__dict__
    if fields.keys() != returned.keys():  # a cached property lies among them
        names = type(given).model_fields
        fields, returned = ({name: held.get(name) for name in names} for held in (fields, returned))
    extra, returned_extra = given.__pydantic_extra__, back.__pydantic_extra__
    return (
        _members(fields, returned)
        and (extra is returned_extra or same(extra, returned_extra))  # None, in most models
        and given.__pydantic_private__ == back.__pydantic_private__
        and given.__pydantic_fields_set__ == back.__pydantic_fields_set__
    )


_PLAIN: Final[frozenset[type]] = frozenset({str, int, bool, type(None), bytes, UUID, date, time, timedelta})

_COMPARE: Final[dict[type, Callable[[Any, Any], object]]] = {
    **dict.fromkeys(_PLAIN, eq),
    float: _floats,
    Decimal: _decimals,
    list: _sequences,
    tuple: _sequences,
    deque: _deques,
    dict: _dicts,
    set: _sets,
    frozenset: _sets,
    datetime: _datetimes,
}
