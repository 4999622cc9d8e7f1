"""Members are sorted by the UTF-16 code units of their names (RFC 8785 section 3.2.3), once per shape.

A shape is the tuple of an object's names. Real traffic repeats a few shapes for ever, so the sorted order
and the quoted names are kept per shape, in a cache bounded by entries and by characters.
"""

from __future__ import annotations

from json.encoder import encode_basestring as quote

from .number import Refused

Shape = tuple[tuple[str, str], ...]

_MAX_SHAPES = 1024
_MAX_CHARACTERS = 1 << 19  # of all names in the cache
_MAX_CHARACTERS_OF_ONE = 1 << 12

__all__ = ["Shapes", "quote", "sorted_names"]


def sorted_names(names: list[str]) -> list[str]:
    """Names in the order of their UTF-16 code units."""
    # Code point order is the same, unless a surrogate pair (U+D800..U+DFFF in UTF-16) meets a name
    # from U+E000 up: only names beyond U+FFFF need the slower key.
    if names and max("".join(names), default="") > "\uffff":
        return sorted(names, key=_utf_16_units)
    return sorted(names)


def _utf_16_units(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


class Shapes:
    """From the names of an object to ``((name, '{"name":'), (name, ',"name":'), …)`` in canonical order.

    Emptied when full, which costs one sort per shape in use. Two threads may compute one shape at the same
    time; both get the same answer.

    Attributes:
        known: the shape of a tuple of names, or None; a dict's own method, for it is asked for every object.
    """

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._characters = 0
        self.known = self._shapes.get

    def new(self, names: tuple[str, ...]) -> Shape:
        """Compute a shape, and remember it unless it is large.

        Raises:
            Refused: a name is not exactly a str, so an equal tuple might be written differently.
        """
        for name in names:
            if type(name) is not str:
                raise Refused("a name that is not exactly a str")
        shape = tuple(
            (name, ("," if position else "{") + quote(name) + ":")
            for position, name in enumerate(sorted_names(list(names)))
        )
        characters = sum(map(len, names)) + len(names)
        if characters <= _MAX_CHARACTERS_OF_ONE:
            if len(self._shapes) >= _MAX_SHAPES or self._characters + characters > _MAX_CHARACTERS:
                self._shapes.clear()
                self._characters = 0
            self._characters += characters
            self._shapes[names] = shape
        return shape
