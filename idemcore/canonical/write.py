"""From a tree of dicts, lists and scalars to canonical text: quickly, or by the walk that always works.

`Writer.quickly` is a plain recursive walk. Whatever stops it (a value it refuses, a caller whose stack is
nearly used up) sends the same tree through `Writer.slowly`, which does not recurse, and is the only one whose
errors are told to anyone. Both give the same text.

Values that JSON does not have are turned into ones that it has, one level at a time, by `reduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .number import NumberRules, Refused, Verbatim
from .order import Shapes, quote
from .tree import MAX_DEPTH, NATIVE, SCALARS, TOO_DEEP, Ready, Reduce, scalar_text, sorted_array
from .write_slowly import written_slowly

Walk = Callable[[Any, list[str], int], None]

_SHAPES = Shapes()  # one for all writers, for the order of names is the same under every rule


class Writer:
    """Writes trees under one set of number rules; immutable but for caches, so threads may share it.

    Args:
        rules: how numbers are printed.
        ready: the numbers that have a memory: literals, which are bytes, in trees that come from JSON text;
            floats in a caller's values, whose bytes are just another type to be reduced.
        reduce: turns a value of any other type into a dict, list, tuple, set, frozenset, str, int, float,
            bool, None or Verbatim of exactly that type, or raises Refused.
        steps: how `reduce` begins with values of types that it has met.
    """

    def __init__(
        self, rules: NumberRules, ready: Ready, reduce: Reduce, steps: Mapping[type, Reduce] | None = None
    ) -> None:
        self._rules = rules
        self._ready = ready
        self._reduce = reduce
        self._walk = _walk_of(rules, ready, reduce, steps if steps is not None else {})

    def quickly(self, value: object, depth: int = 0) -> str:
        """The canonical text of what stands inside `depth` containers.

        Any exception means that `slowly` has to answer, but for one: a tree that came from JSON text and is
        Refused here is refused there as well.
        """
        parts: list[str] = []
        self._walk(value, parts, depth)
        return "".join(parts)

    def slowly(self, value: object) -> str:
        """The canonical text; needs a handful of stack frames however deep `value` is.

        Raises:
            CanonicalizationError: naming the path of what has no canonical form.
        """
        return written_slowly(value, self._rules, self._ready, self._reduce)


def _walk_of(rules: NumberRules, ready: Ready, reduce: Reduce, steps: Mapping[type, Reduce]) -> Walk:
    """The recursive walk of a Writer: appends the text of a value to a list of parts.

    One long function with the common kinds of value spelled out where they are met, for a call per value
    would cost as much again as all the rest; variables of the closure are read faster than attributes.
    """
    above, below = -rules.plain_below, rules.plain_below
    ready_kind, known, new = ready.kind, ready.known, ready.new
    known_shape, new_shape = _SHAPES.known, _SHAPES.new
    known_step = steps.get

    def walk(value: Any, parts: list[str], depth: int) -> None:
        kind = type(value)
        if kind is dict:
            if depth >= MAX_DEPTH:
                raise Refused(TOO_DEEP)
            names = tuple(value)
            for name, prefix in known_shape(names) or new_shape(names):
                parts.append(prefix)
                item = value[name]
                kind = type(item)
                if kind is str:
                    parts.append(quote(item))
                elif kind is ready_kind:
                    parts.append(known(item) or new(item))
                elif kind is int and above < item < below:
                    parts.append(repr(item))
                elif item is None:
                    parts.append("null")
                elif item is True:
                    parts.append("true")
                elif item is False:
                    parts.append("false")
                else:
                    walk(item, parts, depth + 1)
            parts.append("}" if value else "{}")
        elif kind is list or kind is tuple:
            if depth >= MAX_DEPTH:
                raise Refused(TOO_DEEP)
            prefix = "["
            for item in value:
                parts.append(prefix)
                prefix = ","
                kind = type(item)
                if kind is str:
                    parts.append(quote(item))
                elif kind is ready_kind:
                    parts.append(known(item) or new(item))
                elif kind is int and above < item < below:
                    parts.append(repr(item))
                else:
                    walk(item, parts, depth + 1)
            parts.append("]" if value else "[]")
        elif kind is str:
            parts.append(quote(value))
        elif kind is ready_kind:
            parts.append(known(value) or new(value))
        elif kind in SCALARS:
            parts.append(scalar_text(value, rules))
        elif kind is set or kind is frozenset:
            if depth >= MAX_DEPTH:
                raise Refused(TOO_DEEP)
            texts: list[str] = []
            for item in value:
                own: list[str] = []
                walk(item, own, depth + 1)
                texts.append("".join(own))
            parts.append(sorted_array(texts))
        else:
            # Nearly always one step is all; what goes wrong in it, `slowly` finds again.
            step = known_step(kind)
            reduced = step(value) if step is not None else value
            if type(reduced) is Verbatim:
                parts.append(reduced)
            else:
                walk(reduced if type(reduced) in NATIVE else reduce(value), parts, depth)

    return walk
