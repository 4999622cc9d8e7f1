"""A number's text is a function of its exact value: no float is made unless the mode asks for one.

RFC 8785 section 3.2.2.3 prints numbers as ECMAScript's ``Number::toString`` does, which is defined over
IEEE doubles: 9007199254740993 and 9007199254740992 get one text. `EXACT` keeps that layout but fills it
with the literal's exact decimal value, so it is byte for byte RFC 8785 wherever a literal survives the
trip through a double, and never merges two numbers anywhere else. `RFC8785` is the strict form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

MAX_EXPONENT_DIGITS = 12
_MAX_TEXTS = 8192
_MAX_REMEMBERED = 16  # characters
_PLAIN_BELOW = 10**21  # ECMAScript prints integers below 1e21 without an exponent
_DOUBLES_ARE_EXACT_TO = 2**53


class Refused(ValueError):
    """A reason, still without its place, why something has no canonical form; never leaves this package."""


class Verbatim(str):
    """Canonical text that is written as it is: a number, or a tagged value. A plain str gets quoted."""

    __slots__ = ()


def exact_literal(literal: str) -> str:
    """The exact value of a decimal literal in ECMAScript's layout.

    Args:
        literal: digits with an optional sign, fraction and exponent.

    Raises:
        Refused: an exponent of more than 12 digits, written or resulting.
    """
    if len(literal) <= 21 and "e" not in literal and "E" not in literal and "0000" not in literal:
        # The common case, 10.50: neither large nor small, so all that can go are zeros at its end.
        if literal[-1] != "0":
            return literal
        if "." in literal:
            text = literal.rstrip("0")
            text = text[:-1] if text[-1] == "." else text
            return text if text != "-0" else "0"
    mantissa, _, written = literal.replace("E", "e").partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-+").partition(".")
    exponent = _exponent(written) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0"  # zero has no sign, RFC 8785 section 3.2.2.3
    significant = digits.rstrip("0")
    # The value is 0.<significant> times ten to the power `point`.
    point = len(digits) + exponent
    return sign + _layout(significant, point)


def _exponent(written: str) -> int:
    magnitude = written.lstrip("+-").lstrip("0")
    if len(magnitude) > MAX_EXPONENT_DIGITS:
        raise Refused(f"an exponent of more than {MAX_EXPONENT_DIGITS} digits")
    # Without leading zeros, of which int() takes no more than the interpreter's limit on digits.
    exponent = int(magnitude or "0")
    return -exponent if written.startswith("-") else exponent


def _layout(digits: str, point: int) -> str:
    """ECMAScript ``Number::toString`` steps 6 to 10, with `digits` and `point` as its s and n."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    exponent = point - 1
    if abs(exponent) >= 10**MAX_EXPONENT_DIGITS:
        # Else the canonical text itself would be refused when it is read again.
        raise Refused(f"an exponent of more than {MAX_EXPONENT_DIGITS} digits")
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{exponent:+d}"


def exact_integer(value: int) -> str:
    """The exact text of an int of any size."""
    if -_PLAIN_BELOW < value < _PLAIN_BELOW:
        return int.__repr__(value)
    # Decimal, for the interpreter's limit on digits (4300 by default) does not hold there.
    return exact_literal(str(Decimal(value)))


def _shortest(written: str) -> str:
    """Of a double as Python writes it: the shortest decimal text that reads back, in ECMAScript's layout."""
    if written[-1] in "nf":  # nan, inf, -inf
        raise Refused(f"{written} is not a number that JSON has")
    return exact_literal(written)


def double_literal(literal: str) -> str:
    """A literal rounded to the nearest double, as strict RFC 8785 prints it."""
    value = float(literal)
    if math.isinf(value):
        raise Refused("a number beyond the range of doubles")
    return exact_literal(float.__repr__(value))


def double_integer(value: int) -> str:
    """An int rounded to the nearest double, as strict RFC 8785 prints it."""
    try:
        return exact_literal(float.__repr__(float(value)))
    except OverflowError:
        raise Refused("a number beyond the range of doubles") from None


_Number = TypeVar("_Number")


class Memory(Generic[_Number]):
    """From numbers of one type to their texts, of which short ones are remembered.

    Prices come again; coordinates do not and would only drive the prices out. Emptied when full. Two threads
    may compute one text at the same time; both get the same. What grows, such as 1e5, is not remembered, so
    none of it goes unnoticed.

    Args:
        kind: the type of the numbers.
        spelled: how such a number is written, which need not be canonical.
        text: the canonical text of what is written.

    Attributes:
        known: the text of a number, or None; a dict's own method, for it is asked for every number.
        grown: another object after each number whose text is longer than what was written; none comes back,
            so no other thread can undo the change.
    """

    def __init__(
        self, kind: type[_Number], spelled: Callable[[_Number], str], text: Callable[[str], str]
    ) -> None:
        self.kind = kind
        self._spelled = spelled
        self._text = text
        self._texts: dict[_Number, str] = {}
        self.known: Callable[[_Number], str | None] = self._texts.get
        self.grown = object()

    def new(self, number: _Number) -> str:
        """Compute a number's text.

        Raises:
            Refused: it has none.
        """
        written = self._spelled(number)
        text = self._text(written)
        if len(text) > len(written):
            self.grown = object()
        elif len(written) <= _MAX_REMEMBERED:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts.clear()
            self._texts[number] = text
        return text


@dataclass(frozen=True, slots=True)
class NumberRules:
    """How one mode prints numbers.

    Attributes:
        literal: canonical text of a JSON number literal (RFC 8259 section 6) or of a `Decimal`'s text.
        integer: canonical text of an int.
        plain_below: an int whose absolute value is smaller is printed by ``repr`` in this mode.
        literals: the texts of literals as bytes, remembered.
        floats: the texts of floats, remembered.
    """

    literal: Callable[[str], str]
    integer: Callable[[int], str]
    plain_below: int
    literals: Memory[bytes]
    floats: Memory[float]


def _rules(literal: Callable[[str], str], integer: Callable[[int], str], plain_below: int) -> NumberRules:
    literals = Memory(bytes, bytes.decode, literal)
    floats = Memory(float, float.__repr__, _shortest)
    return NumberRules(literal, integer, plain_below, literals, floats)


EXACT = _rules(exact_literal, exact_integer, _PLAIN_BELOW)
RFC8785 = _rules(double_literal, double_integer, _DOUBLES_ARE_EXACT_TO)
