"""What an object holds beside what is written of it would be dropped unseen: such an object is refused.

An int with a currency, a list with a tag, a dataclass that keeps more than its fields: written without that,
two requests would be one. Cached properties are made of the rest, and what SQLAlchemy keeps there is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MemberDescriptorType
from typing import Any, Final

from .number import Refused

_MISSING: Final = object()


def beside(cls: type, base: type, written: AbstractSet[str] = frozenset()) -> Callable[[Any], None] | None:
    """What refuses objects of a class that hold more than is written; None where they have no room for it.

    Args:
        cls: their very class.
        base: what is written holds all that this class has.
        written: the names of attributes that are written.
    """
    slots = [(name, slot) for name, slot in _slots(cls, base) if name not in written]
    has_dict = bool(cls.__dictoffset__)
    if not slots and not has_dict:
        return None

    def check(value: Any) -> None:
        held = value.__dict__ if has_dict else {}
        if not held.keys() <= written:
            refuse_others(cls, held, written, dict.items(value) if isinstance(value, dict) else ())
        for name, slot in slots:
            if _in_slot(slot, value):
                raise _refusal(cls, name)

    return check


def refuse_others(
    cls: type,
    held: Mapping[str, object],
    written: AbstractSet[str],
    members: Iterable[tuple[object, object]] = (),
) -> None:
    """Refuse an object whose attributes are more than what is written.

    Args:
        cls: its class.
        held: its attributes.
        written: the names of those that are written.
        members: of a dict, which may show them as attributes as well.
    """
    shown = {name: member for name, member in members if isinstance(name, str)}
    for name, value in held.items():
        if name in written or name.startswith("_sa_") or shown.get(name, _MISSING) is value:
            continue
        if type(getattr(cls, name, None)).__name__ == "cached_property":  # of functools, or of a framework
            continue
        if name.startswith("_") and name[1:] in written and name[1:] not in held:
            continue  # where a field that is a descriptor keeps its value
        raise _refusal(cls, name)


def _refusal(cls: type, name: str) -> Refused:
    return Refused(
        f"{cls.__name__} holds the attribute {name!r}, which would not be compared: make it a field, exclude "
        "the whole, or pass something plain that says everything"
    )


def _slots(cls: type, base: type) -> Iterator[tuple[str, Any]]:
    for owner in cls.__mro__:
        if owner not in base.__mro__ and "__slots__" in vars(owner):
            for name, slot in vars(owner).items():
                if isinstance(slot, MemberDescriptorType):
                    yield name, slot


def _in_slot(slot: Any, value: object) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True
