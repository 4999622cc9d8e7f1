"""Python values: one number space, text for what is text-like, a tag for what must not be taken for text."""

from __future__ import annotations

import enum
import ipaddress
import uuid
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from idemcore.canonical import canonicalize, canonicalize_json, fingerprint, fingerprint_json
from idemcore.errors import CanonicalizationError


def short(value: object) -> str:
    return ascii(value)[:40] if isinstance(value, str) else type(value).__name__


class Colour(enum.Enum):
    RED = "red"
    DEEP = ("a", 1)


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Bits(enum.Flag):
    A = 1
    B = 2


class Text(str):
    pass


class Count(int):
    def __repr__(self) -> str:
        return "many"


class Ratio(float):
    def __repr__(self) -> str:
        return "some"


Point = namedtuple("Point", ["x", "y"])  # noqa: PYI024  # the untyped kind exists too


@dataclass
class Line:
    sku: str
    amount: Decimal = Decimal("1")


@dataclass(slots=True)
class Gift(Line):
    note: str = ""
    tags: frozenset[str] = field(default_factory=frozenset)


PLUS_ONE = timezone(timedelta(hours=1))
SOME_UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")

EXPECTED: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (10, "10"),
    (10.0, "10"),
    (-0.0, "0"),
    (Decimal("10.00"), "10"),
    (Decimal("-0.00"), "0"),
    (Decimal("1E+2"), "100"),
    (Decimal("0E+20"), "0"),
    (Decimal("12345678901234567.01"), "12345678901234567.01"),
    (0.1, "0.1"),
    (1e21, "1e+21"),
    (1e16, "10000000000000000"),
    (5e-324, "5e-324"),
    (1e-7, "1e-7"),
    (1e-5, "0.00001"),
    (2**53 + 1, "9007199254740993"),
    (10**21, "1e+21"),
    (10**20, "100000000000000000000"),
    (-(10**21) - 1, "-1.000000000000000000001e+21"),
    (123456789012345678901234, "1.23456789012345678901234e+23"),
    (10**4301, "1e+4301"),
    (Count(3), "3"),
    (Ratio(0.5), "0.5"),
    ("é/", '"é/"'),
    (Text("t"), '"t"'),
    ([1, "a", None], '[1,"a",null]'),
    ((1, (2,)), "[1,[2]]"),
    (Point(1, 2), "[1,2]"),
    ([], "[]"),
    ((), "[]"),
    ({}, "{}"),
    (set(), "[]"),
    ({3, 1, 20}, "[1,20,3]"),
    ({"b", "a"}, '["a","b"]'),
    ({frozenset({2, 1}), (3, 0)}, "[[1,2],[3,0]]"),
    ({"b": 1, "a": {"d": 2, "c": 3}}, '{"a":{"c":3,"d":2},"b":1}'),
    ({Word.YES: 1, Text("a"): 2}, '{"a":2,"yes":1}'),
    (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
    (defaultdict(int, {"a": 1}), '{"a":1}'),
    (deque([1, 2], maxlen=2), "[1,2]"),
    (MappingProxyType({"a": 1}), '{"a":1}'),
    ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'),
    (Colour.RED, '"red"'),
    (Colour.DEEP, '["a",1]'),
    (Level.LOW, "1"),
    (Word.YES, '"yes"'),
    (Bits.A | Bits.B, "3"),
    (SOME_UUID, '"12345678-1234-5678-1234-567812345678"'),
    (b"hi", 'bytes("aGk=")'),
    (bytearray(b"hi"), 'bytes("aGk=")'),
    (memoryview(b"h_i_")[::2], 'bytes("aGk=")'),
    (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), '"2024-01-02T03:04:05Z"'),
    (datetime(2024, 1, 2, 4, 4, 5, 600, tzinfo=PLUS_ONE), '"2024-01-02T03:04:05.000600Z"'),
    (datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Paris")), '"2024-07-01T10:00:00Z"'),
    (datetime(2024, 1, 2, 3, 4, 5), '"2024-01-02T03:04:05"'),  # naive is the case
    (datetime(9999, 12, 31, 23, 30, tzinfo=timezone(-timedelta(hours=1))), '"10000-01-01T00:30:00Z"'),
    (datetime(1, 1, 1, 0, 30, tzinfo=PLUS_ONE), '"0000-12-31T23:30:00Z"'),
    (datetime(2024, 10, 27, 2, 30, fold=1), '"2024-10-27T02:30:00 fold=1"'),  # naive is the case
    (datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=UTC), '"2024-10-27T02:30:00Z"'),
    (time(2, 30, fold=1), '"02:30:00 fold=1"'),
    (date(2024, 1, 2), '"2024-01-02"'),
    (time(3, 4), '"03:04:00"'),
    (time(3, 4, tzinfo=PLUS_ONE), '"03:04:00+01:00"'),
    (timedelta(days=1, seconds=2, microseconds=500_000), '"PT86402.5S"'),
    (timedelta(microseconds=-1), '"-PT0.000001S"'),
    (ipaddress.ip_address("::1"), '"::1"'),
    (ipaddress.ip_interface("10.0.0.1/8"), '"10.0.0.1/8"'),
    (Line("a", Decimal("2.50")), '{"amount":2.5,"sku":"a"}'),
    (Gift("a", tags=frozenset({"y", "x"})), '{"amount":1,"note":"","sku":"a","tags":["x","y"]}'),
]


@pytest.mark.parametrize(("value", "expected"), EXPECTED, ids=short)
def test_a_value_has_the_expected_canonical_form(value: object, expected: str) -> None:
    """CAN-08: UUID, dates, Decimal, Enum and their like have one text each."""
    assert canonicalize(value).decode() == expected


@pytest.mark.parametrize(("value", "expected"), EXPECTED, ids=short)
def test_a_value_inside_others_has_the_same_form(value: object, expected: str) -> None:
    """What stands deeper, or is reached by the walk without recursion, is written the same way."""
    assert canonicalize({"k": [value]}).decode() == f'{{"k":[{expected}]}}'


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (10, 10.0),
        (10, Decimal("10.00")),
        (10.5, Decimal("10.5")),
        (Decimal("1E+2"), 100),
        ([1, 2], (1, 2)),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 13, tzinfo=PLUS_ONE)),
        (
            datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=2))),
            datetime(9999, 12, 31, 22, tzinfo=timezone(-timedelta(hours=3))),
        ),
        (Colour.RED, "red"),
        (Level.LOW, 1),
    ],
    ids=short,
)
def test_one_meaning_in_two_types_has_one_fingerprint(left: object, right: object) -> None:
    """int, float and Decimal are one number space; an instant is an instant in every zone."""
    assert fingerprint(left) == fingerprint(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        (False, None),
        (1, "1"),
        (0, ""),
        (b"hi", "hi"),
        (b"hi", "aGk="),
        (b"hi", 'bytes("aGk=")'),
        (b"", ""),
        (2**53, 2**53 + 1),
        (Decimal("0.1"), Decimal("0.10000000000000000001")),
        (Decimal("0.1"), Decimal(0.1)),
        (10**4301, 10**4301 + 1),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 12)),  # naive is the case
        (datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 12, tzinfo=PLUS_ONE)),
        (date(2024, 1, 1), datetime(2024, 1, 1)),  # naive is the case
        (datetime(2024, 10, 27, 2, 30, fold=0, tzinfo=ZoneInfo("Europe/Paris")),
         datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris"))),
        (timedelta(seconds=1), 1),
        ([], {}),
        ([], None),
        ([], ""),
        ([1, 2], [2, 1]),
        ({"a": None}, {}),
        ({"a": "b=1"}, {"a=b": "1"}),
        ([["a"], "b"], [["a", "b"]]),
    ],
    ids=short,
)  # fmt: skip
def test_two_meanings_have_two_fingerprints(left: object, right: object) -> None:
    """CAN-03, CAN-07: types, digits and framing all count."""
    assert fingerprint(left) != fingerprint(right)


class Zone(tzinfo):
    """A zone of the caller's own that cannot say its offset."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise LookupError("no such zone")

    dst = utcoffset

    def tzname(self, moment: datetime | None) -> str:
        return "nowhere"


class Nanos(datetime):
    """What a data library's timestamp looks like: finer than a datetime."""

    nanosecond = 1


def _cycle() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"lines": [1, 2, 3, {"meta": object()}]}, "$.lines[3].meta: object"),
        ({"a": {1: 2}}, "$.a: names must be str, not int"),
        ({(1, 2): 3}, "$: names must be str, not tuple"),
        ({None: 3}, "$: names must be str, not NoneType"),
        ({"a b": [float("nan")]}, '$["a b"][0]: nan'),
        ([float("inf")], "$[0]: inf"),
        ([-float("inf")], "$[0]: -inf"),
        (Decimal("NaN"), "$: NaN"),
        (Decimal("sNaN"), "$: sNaN"),
        ([Decimal("-Infinity")], "$[0]: -Infinity"),
        (Decimal("1E+1000000000000"), "$: an exponent"),
        ("\ud800", "$: a lone surrogate"),
        ({"\ud800": 1}, "$: a lone surrogate"),
        ([1j], "$[0]: complex"),
        (Fraction(1, 3), "$: Fraction"),
        ({"f": lambda: 1}, "$.f: function"),
        ((x for x in "ab"), "$: generator"),
        (iter([1]), "$: list_iterator"),
        (range(3), "$: range"),
        (SimpleNamespace(a=1), "$: SimpleNamespace"),
        (Line, "$: type"),
        (Line("a", {"deep": [{1, 2.5, b"x", ...}]}), "$.amount.deep[0]["),  # type: ignore[arg-type]
        (time(1, tzinfo=ZoneInfo("Europe/Paris")), "$: a time whose zone"),
        (datetime(2024, 1, 1, tzinfo=Zone()), "$: datetime cannot be read: LookupError"),
        (Nanos(2024, 1, 1, tzinfo=UTC), "$: Nanos is finer"),
        (_cycle(), "nested more than 512 deep"),
    ],
    ids=short,
)
def test_what_has_no_form_is_refused_with_its_path(value: object, path: str) -> None:
    """Never a guess by repr() or id(): an unknown type raises, and says where it stands."""
    with pytest.raises(CanonicalizationError) as caught:
        canonicalize(value)
    assert path in str(caught.value)


def test_values_and_bodies_meet_in_one_form() -> None:
    """A value and the JSON text of it are one request."""
    body = b'{"amount": 10.50, "lines": [{"sku": "\\u00e9", "n": 1e3}], "note": null}'
    value = {"note": None, "lines": ({"n": 1000.0, "sku": "é"},), "amount": Decimal("10.5")}
    assert canonicalize(value) == canonicalize_json(body)
    assert fingerprint(value) == fingerprint_json(body)


def test_a_document_cannot_imitate_a_tagged_value() -> None:
    """Tagged tokens are no JSON, so no text and no string has their form."""
    assert canonicalize_json(b'"bytes(\\"aGk=\\")"') != canonicalize(b"hi")
    with pytest.raises(CanonicalizationError):
        canonicalize_json(canonicalize(b"hi"))


def test_strict_mode_rounds_python_numbers_too() -> None:
    """mode="rfc8785" prints ints and Decimals as the doubles that they round to."""
    assert (
        canonicalize([2**53 + 1, Decimal("1.0000000000000000001")], mode="rfc8785") == b"[9007199254740992,1]"
    )
    for value in (10**400, Decimal("1e400")):
        with pytest.raises(CanonicalizationError, match="range"):
            canonicalize(value, mode="rfc8785")


def test_depth_is_limited_for_values_as_for_texts() -> None:
    """512 containers inside each other have a form, 513 have none."""
    value: object = 1
    for _ in range(512):
        value = [value]
    assert canonicalize(value) == b"[" * 512 + b"1" + b"]" * 512
    with pytest.raises(CanonicalizationError, match="512"):
        canonicalize([value])
