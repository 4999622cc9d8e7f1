"""A slow canonicalizer, written to be obviously right, that the quick ones are compared with.

It follows RFC 8259 character by character and keeps everything: an object is a list of pairs, a number is a
Decimal. It shares no line and no trick with the library: no regular expression, no `json`, no caches.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

MAX_DEPTH = 512
MAX_EXPONENT = 999_999_999_999

# Wide enough for every literal that the tests make: nothing is ever rounded.
EXACT = Context(prec=min(MAX_PREC, 10**6), Emax=MAX_EMAX, Emin=MIN_EMIN)


class Invalid(Exception):
    """The text has no canonical form."""


class Object(NamedTuple):
    pairs: list[tuple[str, object]]


class Number(NamedTuple):
    literal: str


def canonical(body: bytes, exclude: Sequence[str] = (), mode: str = "exact") -> bytes:
    """The canonical form of a JSON text.

    Raises:
        Invalid: it has none.
    """
    (form,) = canonical_forms(body, [(exclude, mode)])
    if form is None:
        raise Invalid
    return form


def canonical_forms(body: bytes, rules: Sequence[tuple[Sequence[str], str]]) -> list[bytes | None]:
    """The canonical forms under rules, each of what is excluded and a mode; None where there is none."""
    try:
        with room_for_recursion():
            value = parsed(body.decode("utf-8"))
            check(value, 0)
    except (UnicodeDecodeError, Invalid):
        return [None] * len(rules)
    whole = {mode: form_of(value, (), mode) for mode in {mode for _, mode in rules}}
    # What is left out must be sound as well.
    return [
        form_of(value, exclude, mode) if exclude and whole[mode] else whole[mode] for exclude, mode in rules
    ]


def form_of(value: object, exclude: Sequence[str], mode: str) -> bytes | None:
    tokens = [pointer.split("/")[1:] for pointer in exclude]
    try:
        with room_for_recursion():
            return written(without(value, tokens), mode).encode("utf-8")
    except Invalid:
        return None


@contextmanager
def room_for_recursion() -> Iterator[None]:
    """This file recurses wherever that is the plainest way."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 20 * MAX_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# Reading, RFC 8259


def parsed(text: str) -> object:
    value, at = element(text, 0, 0)
    if at != len(text):
        raise Invalid
    return value


def space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at


def element(text: str, at: int, depth: int) -> tuple[object, int]:
    value, at = plain_value(text, space(text, at), depth)
    return value, space(text, at)


def plain_value(text: str, at: int, depth: int) -> tuple[object, int]:
    first = text[at : at + 1]
    if first in ("{", "[") and first:
        if depth == MAX_DEPTH:
            raise Invalid
        return (read_object if first == "{" else read_array)(text, at + 1, depth + 1)
    if first == '"':
        return read_string(text, at + 1)
    for word, value in (("true", True), ("false", False), ("null", None)):
        if text[at : at + len(word)] == word:
            return value, at + len(word)
    return read_number(text, at)


def read_object(text: str, at: int, depth: int) -> tuple[object, int]:
    pairs: list[tuple[str, object]] = []
    at = space(text, at)
    if text[at : at + 1] == "}":
        return Object(pairs), at + 1
    while True:
        at = space(text, at)
        if text[at : at + 1] != '"':
            raise Invalid
        name, at = read_string(text, at + 1)
        at = space(text, at)
        if text[at : at + 1] != ":":
            raise Invalid
        value, at = element(text, at + 1, depth)
        pairs.append((name, value))
        if text[at : at + 1] == "}":
            return Object(pairs), at + 1
        if text[at : at + 1] != ",":
            raise Invalid
        at += 1


def read_array(text: str, at: int, depth: int) -> tuple[object, int]:
    items: list[object] = []
    at = space(text, at)
    if text[at : at + 1] == "]":
        return items, at + 1
    while True:
        value, at = element(text, at, depth)
        items.append(value)
        if text[at : at + 1] == "]":
            return items, at + 1
        if text[at : at + 1] != ",":
            raise Invalid
        at += 1


def read_string(text: str, at: int) -> tuple[str, int]:
    """As UTF-16 code units first, for these are what an escape spells."""
    units: list[int] = []
    while True:
        char = text[at : at + 1]
        at += 1
        if not char or ord(char) < 0x20:
            raise Invalid
        if char == '"':
            break
        if char != "\\":
            encoded = char.encode("utf-16-be")
            units += [int.from_bytes(encoded[i : i + 2], "big") for i in range(0, len(encoded), 2)]
            continue
        escape = text[at : at + 1]
        at += 1
        if escape == "u":
            digits = text[at : at + 4]
            if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise Invalid
            units.append(int(digits, 16))
            at += 4
        else:
            meaning = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
            if escape not in meaning:
                raise Invalid
            units.append(ord(meaning[escape]))
    try:
        return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be"), at
    except UnicodeDecodeError as error:  # a lone surrogate
        raise Invalid from error


def read_number(text: str, at: int) -> tuple[object, int]:
    start = at

    def digits() -> int:
        nonlocal at
        before = at
        while at < len(text) and text[at] in "0123456789":
            at += 1
        return at - before

    if text[at : at + 1] == "-":
        at += 1
    leading_zero = text[at : at + 1] == "0"
    count = digits()
    if count == 0 or (leading_zero and count > 1):
        raise Invalid
    if text[at : at + 1] == ".":
        at += 1
        if digits() == 0:
            raise Invalid
    if text[at : at + 1] in ("e", "E") and at < len(text):
        at += 1
        if text[at : at + 1] in ("+", "-") and at < len(text):
            at += 1
        if digits() == 0:
            raise Invalid
    return Number(text[start:at]), at


# Judging


def check(value: object, depth: int) -> None:
    if isinstance(value, Object):
        names = [name for name, _ in value.pairs]
        if len(set(names)) != len(names):
            raise Invalid
        for _, member in value.pairs:
            check(member, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check(item, depth + 1)


def without(value: object, pointers: list[list[str]]) -> object:
    """A copy without what a pointer names."""

    def kept(children: Iterator[tuple[str, object]]) -> Iterator[tuple[str, object]]:
        for token, child in children:
            rests = [rest for first, *rest in pointers if first == "*" or unescaped(first) == token]
            if [] not in rests:
                yield token, without(child, rests)

    if isinstance(value, Object):
        return Object(list(kept(iter(value.pairs))))
    if isinstance(value, list):
        return [item for _, item in kept((str(index), item) for index, item in enumerate(value))]
    return value


def unescaped(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


# Writing, RFC 8785


def written(value: object, mode: str) -> str:
    if isinstance(value, Object):
        members = sorted(value.pairs, key=lambda pair: code_units(pair[0]))
        return "{" + ",".join(f"{quoted(name)}:{written(member, mode)}" for name, member in members) + "}"
    if isinstance(value, Number):
        return number(value.literal, mode)
    if isinstance(value, list):
        return "[" + ",".join(written(item, mode) for item in value) + "]"
    if isinstance(value, str):
        return quoted(value)
    return {None: "null", True: "true", False: "false"}[value]  # type: ignore[index]


def code_units(name: str) -> list[int]:
    encoded = name.encode("utf-16-be")
    return [encoded[i] * 256 + encoded[i + 1] for i in range(0, len(encoded), 2)]


def quoted(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return (
        '"' + "".join(short.get(char) or (f"\\u{ord(char):04x}" if char < " " else char) for char in text) + '"'
    )


def number(literal: str, mode: str) -> str:
    mantissa, _, exponent = literal.lower().partition("e")
    if mode == "rfc8785":
        power = int(exponent.lstrip("+-").lstrip("0")[:12] or "0")  # more digits change no double
        double = nearest_double(mantissa, -power if exponent.startswith("-") else power)
        value = Decimal(repr(double))
    elif len(exponent.lstrip("+-").lstrip("0")) > 12:
        raise Invalid
    else:
        value = EXACT.create_decimal(literal)
    if value == 0:
        return "0"
    sign, digits, point = EXACT.normalize(value).as_tuple()
    text = "".join(map(str, digits))
    scientific = len(text) - 1 + int(point)  # of d.ddd times ten to this
    minus = "-" if sign else ""
    if abs(scientific) > MAX_EXPONENT:
        raise Invalid
    if scientific >= 21 or scientific < -6:
        fraction = "." + text[1:] if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{'+' if scientific > 0 else '-'}{abs(scientific)}"
    if scientific < 0:
        return f"{minus}0.{'0' * (-scientific - 1)}{text}"
    if len(text) <= scientific + 1:
        return f"{minus}{text.ljust(scientific + 1, '0')}"
    return f"{minus}{text[: scientific + 1]}.{text[scientific + 1 :]}"


def nearest_double(mantissa: str, exponent: int) -> float:
    """Correctly rounded by the arithmetic of fractions, for exponents that a double can come near."""
    digits = mantissa.replace(".", "").lstrip("-")
    magnitude = len(digits.lstrip("0")) + exponent - (len(mantissa.partition(".")[2]))
    if set(digits) == {"0"} or magnitude < -400:
        return 0.0
    if magnitude > 400:
        raise Invalid
    try:
        return float(Fraction(mantissa) * Fraction(10) ** exponent)
    except OverflowError as error:
        raise Invalid from error
