"""From JSON text to a tree, twice: by the scanner behind `json`, and without recursion.

Numbers never become floats: in the tree a number is an int, or else its literal as bytes, which no JSON text
yields otherwise. (Bytes, because `str.encode` is the cheapest hook that the scanner can call.) The scanner is
quick but recurses, so a caller deep in its own stack would make it fail on a document that is fine elsewhere;
`Scanner.slowly` reads the same language (RFC 8259) with a stack of its own and finds duplicate names itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs
from sys import get_int_max_str_digits
from typing import Any, NoReturn

from .number import Refused

WHITESPACE = " \t\n\r"

_MAX_INT_DIGITS = 5000


class Scanner:
    """Reads JSON texts; immutable.

    Args:
        ints_are_exact: whether an int says what its literal says; it does not where doubles count.
    """

    def __init__(self, *, ints_are_exact: bool) -> None:
        self._scan_literals = _scan_once(str.encode)
        self._scan_once = _scan_once(int) if ints_are_exact else self._scan_literals

    def quickly(self, text: str) -> object:
        """The tree of a text without surrounding whitespace; the last of duplicate names wins.

        Raises:
            Refused: not JSON; the text has no canonical form, whoever reads it.
            RecursionError, ValueError: the scanner cannot say; `slowly` has the answer.
        """
        # int() takes time quadratic in the digits, which the interpreter's limit (4300 by default) bounds.
        # Where somebody lifted it, the literals are not made into ints.
        scan = self._scan_once if 0 < get_int_max_str_digits() <= _MAX_INT_DIGITS else self._scan_literals
        try:
            tree, end = scan(text, 0)
        except (StopIteration, json.JSONDecodeError) as error:
            raise Refused("not JSON") from error
        if end != len(text):
            raise Refused("not JSON: text after its end")
        return tree

    def slowly(self, text: str, max_depth: int) -> object:
        """The tree of a text, without recursion.

        Raises:
            Refused: not JSON, a duplicate name, or nested too deep.
        """
        return _Reader(text, max_depth).read()


def _scan_once(parse_int: Callable[[str], object]) -> Callable[[str, int], tuple[object, int]]:
    decoder = json.JSONDecoder(
        parse_float=str.encode,
        parse_int=parse_int,
        parse_constant=_refuse_constant,
    )
    # What raw_decode calls, without its frame.
    return decoder.scan_once  # type: ignore[attr-defined,no-any-return]  # not in the stubs


def _refuse_constant(name: str) -> NoReturn:
    raise Refused(f"{name} is not JSON")


_BACKSLASH = ord("\\")
_QUOTE = ord('"')
_FEW = 16

SHORTEST_MEMBER = len(b'"":0,')


def as_many_strings(body: bytes, written: bytes, beside: int) -> bool:
    """Whether a JSON text holds as many strings as what was written of it, canonically, and `beside`."""
    # Where nothing that was written is escaped, all quotes count: an escaped one in the body is then in a
    # string that was dropped, and only adds to the difference. In what is left out on purpose it would not.
    if _BACKSLASH in written or (beside and _BACKSLASH in body):
        return strings_in(body) == strings_in(written) + beside
    return body.count(b'"') == written.count(b'"') + 2 * beside


def strings_in(text: bytes) -> int:
    """How many strings, names included, a valid JSON text holds: half its quotes that are not escaped."""
    quotes = text.count(b'"')
    if _BACKSLASH in text:  # an int, for `in` finds those quickest
        quotes -= _escaped_quotes(text)
    return quotes // 2


def _escaped_quotes(text: bytes) -> int:
    """Backslashes occur in strings alone and pair up from the left; what is left escapes what follows it."""
    others = text.split(b"\\", _FEW)[1:]
    if len(others) == _FEW:
        return text.replace(b"\\\\", b"").count(b'\\"')
    # Few are looked at one by one: single bytes are found several times as fast as pairs.
    escaped, in_pair = 0, False
    for rest in others:
        if in_pair:
            in_pair = False
        elif not rest:
            in_pair = True
        elif rest[0] == _QUOTE:
            escaped += 1
    return escaped


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: tuple[tuple[str, object], ...] = (("true", True), ("false", False), ("null", None))


class _Reader:
    """One reading of one text."""

    def __init__(self, text: str, max_depth: int) -> None:
        self._text = text
        self._at = 0
        self._max_depth = max_depth

    def read(self) -> object:
        stack: list[tuple[Any, str]] = []  # open containers, each with the name that waits for a value
        container: Any = None
        name = ""
        while True:
            # A value starts here.
            value: Any
            opener = self._peek()
            if opener == "{" or opener == "[":
                if len(stack) + (container is not None) >= self._max_depth:
                    raise Refused(f"nested more than {self._max_depth} deep")
                self._at += 1
                value = {} if opener == "{" else []
                closer = self._peek()
                if closer == ("}" if opener == "{" else "]"):
                    self._at += 1
                else:
                    if container is not None:
                        stack.append((container, name))
                    container = value
                    if opener == "{":
                        name = self._name(container)
                    continue
            else:
                value = self._scalar(opener)
            # A value is complete; so may be the containers around it.
            while True:
                if container is None:
                    if self._peek():
                        raise Refused("not JSON: text after its end")
                    return value
                is_object = type(container) is dict
                if is_object:
                    container[name] = value
                else:
                    container.append(value)
                separator = self._peek()
                self._at += 1
                if separator == ",":
                    if is_object:
                        name = self._name(container)
                    break
                if separator != ("}" if is_object else "]"):
                    raise Refused("not JSON")
                value = container
                container, name = stack.pop() if stack else (None, "")

    def _peek(self) -> str:
        """The next character that is not whitespace, or "" at the end."""
        if (space := _SPACE.match(self._text, self._at)) is not None:  # it always matches
            self._at = space.end()
        return self._text[self._at : self._at + 1]

    def _name(self, container: dict[str, object]) -> str:
        name = self._string() if self._peek() == '"' else None
        if name is None or self._peek() != ":":
            raise Refused("not JSON")
        self._at += 1
        if name in container:
            raise Refused("a duplicate member name")
        return name

    def _string(self) -> str:
        try:
            value: str
            value, self._at = scanstring(self._text, self._at + 1, True)
        except json.JSONDecodeError as error:
            raise Refused("not JSON") from error
        return value

    def _scalar(self, first: str) -> object:
        if first == '"':
            return self._string()
        match = _NUMBER.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return match[0].encode()
        for word, value in _WORDS:
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        raise Refused("not JSON")
