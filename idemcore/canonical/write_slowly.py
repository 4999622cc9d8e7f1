"""From a tree to canonical text without recursion: the walk that always gets through, and says what is wrong.

It keeps its own stack, so it works however little of the caller's is left, and knows the path of each value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from idemcore.errors import CanonicalizationError

from .number import NumberRules, Refused
from .order import quote, sorted_names
from .tree import MAX_DEPTH, NATIVE, SCALARS, TOO_DEEP, Ready, Reduce, scalar_text, sorted_array


def written_slowly(value: object, rules: NumberRules, ready: Ready, reduce: Reduce) -> str:
    """The canonical text; needs a handful of stack frames however deep `value` is. See `Writer`.

    Raises:
        CanonicalizationError: naming the path of what has no canonical form.
    """
    parts: list[str] = []
    frames = [_Frame(iter([("", "", value)]), "")]
    try:
        while frames:
            frame = frames[-1]
            for label, prefix, item in frame.items:
                frame.label = label
                parts.append(prefix)
                opened = _opened(item, parts, len(frames), rules, ready, reduce)
                if opened is not None:
                    frames.append(opened)
                    break
            else:
                frames.pop()
                frame.close(parts)
    except Refused as reason:
        raise CanonicalizationError(f"${''.join(frame.label for frame in frames)}: {reason}") from None
    return "".join(parts)


def _opened(
    value: Any, parts: list[str], depth: int, rules: NumberRules, ready: Ready, reduce: Reduce
) -> _Frame | None:
    """Write a scalar, or return the frame of a container whose items come next."""
    kind = type(value)
    if kind is not ready.kind and kind not in NATIVE:
        value = reduce(value)
        kind = type(value)
    if kind is ready.kind:
        parts.append(ready.known(value) or ready.new(value))
        return None
    if kind is str:
        if not value.isascii():
            _refuse_lone_surrogates(value)
        parts.append(quote(value))
        return None
    if kind in SCALARS:
        parts.append(scalar_text(value, rules))
        return None
    if depth > MAX_DEPTH:
        raise Refused(TOO_DEEP)
    if kind is dict:
        return _Frame(_members(value), "}" if value else "{}")
    if kind is set or kind is frozenset:
        return _SetFrame(((f"[{i}]", "", item) for i, item in enumerate(value)), "", parts)
    items = ((f"[{i}]", "," if i else "[", item) for i, item in enumerate(value))
    return _Frame(items, "]" if value else "[]")


class _Frame:
    """An open container of the walk without recursion: what is still to come, and what closes it."""

    def __init__(self, items: Iterator[tuple[str, str, object]], closer: str) -> None:
        self.items = items
        self.closer = closer
        self.label = ""

    def close(self, parts: list[str]) -> None:
        parts.append(self.closer)


class _SetFrame(_Frame):
    """A set: its items are written one after the other, then taken out again and sorted."""

    def __init__(self, items: Iterator[tuple[str, str, object]], closer: str, parts: list[str]) -> None:
        super().__init__(self._noting(items, parts), closer)
        self._starts: list[int] = []

    def _noting(
        self, items: Iterator[tuple[str, str, object]], parts: list[str]
    ) -> Iterator[tuple[str, str, object]]:
        for item in items:
            self._starts.append(len(parts))
            yield item

    def close(self, parts: list[str]) -> None:
        ends = [*self._starts[1:], len(parts)]
        texts = ["".join(parts[start:end]) for start, end in zip(self._starts, ends, strict=True)]
        if self._starts:
            del parts[self._starts[0] :]
        parts.append(sorted_array(texts))


def _members(value: dict[Any, object]) -> Iterator[tuple[str, str, object]]:
    """Labels, prefixes and values in canonical order; names of a str subclass count by their text."""
    members: dict[str, object] = {}
    for name, item in value.items():
        if not isinstance(name, str):
            raise Refused(f"names must be str, not {type(name).__name__}")
        members[str.__str__(name)] = item
    if len(members) != len(value):
        raise Refused("two names with the same text")
    for position, name in enumerate(sorted_names(list(members))):
        _refuse_lone_surrogates(name)
        label = f".{name}" if name.isidentifier() else f"[{quote(name)}]"
        yield label, ("," if position else "{") + quote(name) + ":", members[name]


def _refuse_lone_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("a lone surrogate, which UTF-8 cannot hold") from None
