"""Which fields of a pydantic model were set is part of what it says, and JSON does not tell.

A fingerprint is made of the set fields alone, so a model that comes back with more of them asks for
something else. What a reading gets wrong is written down as ``[path, names]``, one for each model, and put
right after the next reading. A path leads over names of fields and places in sequences and dicts; a member of
a set has no place, and goes by a digest of what it says.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from idemcore.canonical import canonicalize
from idemcore.same import is_model

Step: TypeAlias = str | int
Mark: TypeAlias = tuple[list[Step], list[str]]

_PLAIN: Final = frozenset({str, int, float, bool, type(None), bytes, Decimal, UUID, date, datetime})
"""What most values are made of in the end, and holds no model; any other type is looked into."""


def differences(given: object, back: object) -> Iterator[Mark]:
    """Where two values, equal but for this, differ in their set fields; the names are those of `given`.

    Raises:
        ValueError: two members of a set say the same, so that a path would lead to either.
        CanonicalizationError: what a member says has no digest.
    """
    for path, mine, other in _models(given, back, []):
        if mine.__pydantic_fields_set__ != other.__pydantic_fields_set__:
            yield path, sorted(mine.__pydantic_fields_set__)


def put_right(value: object, marks: Iterable[Mark]) -> None:
    """Gives each model at a path its set fields.

    A path that the classes no longer have is passed over.

    Raises:
        ValueError: a member of a set does not say any more what it said; which one it is cannot be told.
    """
    parts_of: dict[int, Mapping[Step, Any]] = {}  # by id: for a set it takes a digest of each member
    for path, names in marks:
        found = value
        for step in path:
            if id(found) not in parts_of:
                parts_of[id(found)] = _parts(found)
            parts = parts_of[id(found)]
            if step not in parts and isinstance(found, (set, frozenset)):
                raise ValueError("a member of a set cannot be told any more")
            found = parts.get(step)
        if is_model(type(found)):
            object.__setattr__(found, "__pydantic_fields_set__", set(names))


def _models(given: Any, back: Any, path: list[Step]) -> Iterator[tuple[list[Step], Any, Any]]:
    if type(given) is not type(back):
        return
    if is_model(type(given)):
        yield path, given, back
    if parts := _parts(given):
        returned = _parts(back)
        for step, part in parts.items():
            yield from _models(part, returned.get(step), [*path, step])


def _parts(value: Any) -> Mapping[Step, Any]:
    """What a value is made of and may hold a model, by the steps that lead there."""
    return {step: part for step, part in _steps(value) if type(part) not in _PLAIN}


def _steps(value: Any) -> Iterable[tuple[Step, Any]]:
    """The steps into a value and what they lead to; into a set those alone that lead further."""
    if isinstance(value, (list, tuple, deque)):
        return enumerate(value)
    if isinstance(value, dict):
        return enumerate(value.values())
    if isinstance(value, (set, frozenset)):
        members = [member for member in value if _parts(member) or is_model(type(member))]
        named = {_digest(member): member for member in members}
        if len(named) < len(members):
            raise ValueError("two members of a set say the same")
        return named.items()
    if is_model(type(value)):
        held, extra = value.__dict__, value.__pydantic_extra__
        fields = [(name, held[name]) for name in type(value).__pydantic_fields__ if name in held]
        return [*fields, *extra.items()] if extra else fields
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return ()


def _digest(member: object) -> str:
    return hashlib.sha256(canonicalize(_content(member))).hexdigest()


def _content(value: Any) -> Any:
    """All that a value says, whatever of it is set, and the same in every process."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(_digest, value))
    if isinstance(value, dict):
        return [[_content(name), _content(item)] for name, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return [_content(item) for item in value]
    steps = _steps(value)
    return {step: _content(part) for step, part in steps} if steps else value
