"""What the trees are made of that are written: kinds of scalars, remembered numbers, the limit of depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .number import NumberRules, Verbatim

MAX_DEPTH = 512
TOO_DEEP = f"nested more than {MAX_DEPTH} deep"

Reduce = Callable[[object], object]


class Ready(Protocol):
    """Values of one type whose text is remembered."""

    @property
    def kind(self) -> type:
        """That type, exactly."""
        ...

    @property
    def known(self) -> Callable[[Any], str | None]:
        """The text of such a value, or None."""
        ...

    @property
    def new(self) -> Callable[[Any], str]:
        """The text where `known` has none."""
        ...


SCALARS = frozenset({int, bool, type(None), Verbatim})
NATIVE = SCALARS | {str, dict, list, tuple, set, frozenset}


def scalar_text(value: Any, rules: NumberRules) -> str:
    """The text of a scalar that is neither a str nor remembered."""
    kind = type(value)
    if kind is int:
        return repr(value) if -rules.plain_below < value < rules.plain_below else rules.integer(value)
    if kind is Verbatim:
        return str(value)
    return "null" if value is None else "true" if value else "false"


def sorted_array(texts: list[str]) -> str:
    """The array of a set's items, given as texts."""
    # Code point order of the texts is the byte order of their UTF-8; a set's own order is a matter of hashes.
    return f"[{','.join(sorted(texts))}]"
