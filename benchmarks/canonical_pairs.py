"""Pairs of JSON bodies that are one request, or two: what a fingerprint has to get right.

They are the rows of the table that the tests hold the library to; here every peer is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SAME: list[tuple[str, str]] = [
    ("1", "1.0"),
    ("1", "1e0"),
    ("1", "10e-1"),
    ("10.50", "10.5"),
    ("-0", "0"),
    ("-0.0", "0"),
    ("0e5", "0"),
    ("1E+2", "100"),
    ("1e21", "1000000000000000000000"),
    ("0.0000001", "1E-7"),
    (r'"\u00e9\/"', '"é/"'),
    (r'"\ud83d\ude00"', '"😀"'),
    ('{"n":"\\u00e9"}', '{ "n" : "é" }'),
    ('{"a":1,"b":{"x":1,"y":2}}', '{"b":{"y":2,"x":1},"a":1}'),
    ('[{"b":[{"d":2,"c":1}],"a":1}]', '[{"a":1,"b":[{"c":1,"d":2}]}]'),
    ('{"a":' * 500 + "1.0" + "}" * 500, '{"a":' * 500 + "1" + "}" * 500),
]

DIFFERENT: list[tuple[str, str]] = [
    ("9007199254740993", "9007199254740992"),
    ("1.0000000000000000001", "1.0"),
    ("12345678901234567.01", "12345678901234567.02"),
    ("123456789012345678901234", "123456789012345678901235"),
    ("5e-324", "4e-324"),
    ("1e400", "1e500"),
    ("1e-400", "0"),
    ("1" + "0" * 4301, "1" + "0" * 4300),
    ('"10.0"', '"10.00"'),
    ('"a,1.0,b"', '"a,1,b"'),
    ('"\u00e9"', '"e\u0301"'),
    (r'"\ud800"', '"\ufffd"'),
    (r'"\ud800"', r'"\ud801"'),
    (r'{"\ud800":1}', '{"\ufffd":1}'),
    ('{"a":1,"a":2}', '{"a":2}'),
    ('{"a":1,"a":2}', '{"a":2,"a":1}'),
    ('{"a":1,"\\u0061":1000}', '{"a":1000}'),
    ('{"a":1,"a":2,"b":1e-5,"c":1e-5}', '{"a":2,"b":1e-5,"c":1e-5}'),
    ("[NaN]", "[null]"),
    ("[Infinity]", "[1e400]"),
    ("01", "1"),
    ('{"a":null}', "{}"),
    ("[1,2]", "[2,1]"),
    ("[]", "{}"),
    ("[]", "null"),
    ('""', ""),
    ("1", '"1"'),
    ("1", "true"),
    ("1", "[1]"),
]


@dataclass(frozen=True)
class Verdict:
    """How a peer did on the pairs.

    Attributes:
        merged: two requests with one fingerprint: a wrong amount may be replayed.
        split: one request with two fingerprints: a true retry is refused.
        refused: pairs on which it raised.
    """

    merged: int
    split: int
    refused: int

    def __str__(self) -> str:
        return f"{self.merged} / {self.split} / {self.refused}"


def judged(fingerprint: Callable[[bytes], object]) -> Verdict:
    """Ask a peer about all pairs."""
    merged = split = refused = 0
    for pairs, same in ((SAME, True), (DIFFERENT, False)):
        for left, right in pairs:
            try:
                equal = fingerprint(left.encode()) == fingerprint(right.encode())
            except Exception:
                refused += 1
                continue
            merged += equal and not same
            split += same and not equal
    return Verdict(merged, split, refused)
