"""JSON texts through msgspec's compiled reader and writer, with guards where it does something else.

The writer sorts names and emits `msgspec.Raw` as it is, so it is enough that the reader's hook turns each
number literal that is no int into the Raw of its canonical text. Whatever a guard catches, and any error, is
answered with None: the standard library's way is asked instead, and only that one refuses.

Only mode ``exact`` is here: where doubles count, ints have to be rounded too, and they have no hook.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from gc import get_referents
from typing import Any

from .exclude import Exclusion, pruned
from .number import exact_literal
from .scan import SHORTEST_MEMBER, as_many_strings, strings_in
from .tree import MAX_DEPTH

FastWay = Callable[[bytes, Exclusion | None], bytes | None]

_MAX_LITERALS = 8192
_MAX_REMEMBERED = 16  # characters


def way_over(module: Any) -> FastWay:
    """The fast way over msgspec, or over anything with its interface; not yet compared with anything."""
    raws = _Raws(module.Raw)
    decode = module.json.Decoder(float_hook=raws.__getitem__).decode
    decode_verbatim = module.json.Decoder(float_hook=module.Raw).decode
    encode = module.json.Encoder(order="sorted").encode

    def of_json(body: bytes, exclusion: Exclusion | None) -> bytes | None:
        """The canonical form; None where the other way has to say."""
        decoded = decode
        # Of 22 digits in a row, four stand where these samples are taken; so where no four follow each other
        # among the samples, there are no 22, and a fifth of the text was looked at.
        if body[::5].translate(_OUTLINE).find(b"0000") >= 0:
            outline = body.translate(_OUTLINE)
            # An int from 1e21 on, 22 digits, is printed with an exponent, which this writer does not do.
            if outline.find(_TOO_LONG) >= 0:
                return None
            # Long literals are not remembered; where many are at the beginning, see whether all that there are
            # are canonical already.
            if outline[:_BEGINNING].count(_LONG) > _MANY and _are_canonical(body, outline):
                decoded = decode_verbatim
        grown = raws.grown
        strings = 0
        try:
            tree = decoded(body)
            if len(body) > 2 * MAX_DEPTH and _is_deep(tree, body):
                return None
            if exclusion is not None:
                tree, dropped = pruned(tree, exclusion, _as_it_is)
                strings = strings_in(encode([item for _, item in dropped]))
            written: bytes = encode(tree)
        except Exception:
            return None
        if exclusion is not None:
            lost = not as_many_strings(body, written, strings)  # see Form
        else:
            may_have_lost = len(body) - len(written) >= SHORTEST_MEMBER or raws.grown is not grown  # see Form
            lost = may_have_lost and _lost_a_member(body, written)
        if lost or (not written.isascii() and _may_be_missorted(written)):
            return None
        return written

    return of_json


# A text with each digit as 0 and each E as e, in which runs of digits are easily found.
_OUTLINE = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256)).replace(b"E", b"e")
_TOO_LONG = b"0" * 22
_LONG = b"0" * 12
_BEGINNING = 4096  # bytes
_MANY = 16
_EXPONENT = re.compile(b"e(?<=0e)")  # found by its e, for digits may be many
_ENDS_IN_ZERO = re.compile(rb"\.[0-9]++(?<=0)")  # possessive: the digits are not tried again one by one


def _are_canonical(body: bytes, outline: bytes) -> bool:
    """Whether every number literal is its own canonical text; what looks like one in a string counts too.

    Without exponent, zeros at its end, or four zeros behind the point, a literal is canonical; its digits
    before the point were found to be fewer than 22.
    """
    return _EXPONENT.search(outline) is None and body.find(b"0.0000") < 0 and _ENDS_IN_ZERO.search(body) is None


class _Raws(dict[str, Any]):
    """From number literals to Raws of their canonical text, short ones remembered; emptied when full.

    A dict, for its bound `__getitem__` is called from C without a Python frame.

    Attributes:
        grown: another object after each literal that is shorter than its canonical text, such as 1e5. These
            are not remembered, so none goes unnoticed; and no object comes back, so no other thread can undo
            the change.
    """

    def __init__(self, raw: Callable[[str], Any]) -> None:
        super().__init__()
        self._raw = raw
        self.grown = object()

    def __missing__(self, literal: str) -> Any:
        text = exact_literal(literal)
        raw = self._raw(text)
        if len(text) > len(literal):
            self.grown = object()
        elif len(literal) <= _MAX_REMEMBERED:
            if len(self) >= _MAX_LITERALS:
                self.clear()
            self[literal] = raw
        return raw


def _as_it_is(value: object) -> object:
    return value


def _lost_a_member(body: bytes, written: bytes) -> bool:
    """Whether the reader dropped a member, for of two with one name it keeps the last.

    Where nothing is escaped, strings are written as they were read. The colons in them are then as many in
    both texts, and each member that was dropped took one along. (There are fewer of them than of quotes.)
    """
    if _BACKSLASH in body:
        return not as_many_strings(body, written, 0)
    return body.count(b":") != written.count(b":")


def _may_be_missorted(text: bytes) -> bool:
    """Whether UTF-8 order may differ from UTF-16 order: U+10000 and up (F0 to F4) beside U+E000 to U+FFFF."""
    return (0xEE in text or 0xEF in text) and any(lead in text for lead in range(0xF0, 0xF5))


def _is_deep(tree: object, body: bytes) -> bool:
    """Whether a valid text has anything inside of 512 levels.

    Of the text, quotes and brackets are kept. Two quotes beside each other are then a string that held no
    bracket, or the end of one string and the start of the next: without them, the rest is inside or outside
    of strings as before. If no quote is left, neither is a string, and pairs of brackets can be taken away,
    a level at a time. Else the tree is gone through, a level at a time.
    """
    if len(body) < _LARGE and body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    if _BACKSLASH in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = body.translate(None, _ALL_BUT_STRUCTURE).replace(b'""', b"")
    for _ in range(_USUAL_DEPTH):
        if not rest:
            return False
        rest = rest.replace(b"[]", b"").replace(b"{}", b"")
    # The garbage collector has to find every cycle, so what it lists for some objects leaves out no list and
    # no dict that they hold; and it takes no step of Python for each of them.
    level: list[object] = [tree]
    for _ in range(MAX_DEPTH):
        level = get_referents(*level)
        if not level:
            return False
    return True


_BACKSLASH = ord("\\")  # an int, for `in` finds those quickest
_ALL_BUT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_USUAL_DEPTH = 16
_LARGE = 1 << 16  # bytes; from here on there are more brackets than that anyway
