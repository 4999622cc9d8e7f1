"""No depth of the caller's stack, no size and no other thread changes an outcome; caches stay small."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, RootModel, SecretStr

from idemcore.canonical import Canonicalizer, canonicalize, canonicalize_json, fingerprint, fingerprint_json
from idemcore.canonical.number import EXACT
from idemcore.canonical.write import _SHAPES
from idemcore.errors import CanonicalizationError

# With fewer frames left than this, RecursionError leaves, as it does from any call made there.
FRAMES_NEEDED = 30


class Login(BaseModel):
    user: str
    password: SecretStr


@dataclass
class Line:
    amount: Decimal


class Wrapped(RootModel[Any]):
    pass


def wrapped(times: int) -> Any:
    value: Any = "x"
    for _ in range(times):
        value = Wrapped(value)
    return value


def nested(depth: int) -> Any:
    value: Any = {"b": 1.5, "a": [True]}
    for _ in range(depth - 2):
        value = [value]
    return value


BODIES = [
    b'{"b":[1.50,{"z":1,"y":2}],"a":"\\u00e9"}',
    json.dumps(nested(400)).encode(),
    json.dumps(nested(512)).encode(),
    json.dumps(nested(513)).encode(),
    b"[" * 5000,
    b'{"a":1,"a":2}',
    b"[NaN]",
    b"{oops",
    b'["\\ud800"]',
    b"1" * 5000,
    b"[" * 400 + b"1" * 5000 + b",1e1000000000000" + b"]" * 400,
]
VALUES = [
    nested(400),
    nested(512),
    Login(user="u", password=SecretStr("p")),
    [Line(Decimal("1.50"))],
    {1, 2.5, "x"},
    wrapped(300),
    wrapped(600),  # refused, as what never ends would be
]


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except CanonicalizationError as error:
        return str(error)


def with_frames_left(count: int, call: Callable[[], object]) -> object:
    """The call's outcome when `count` more frames would exhaust the stack."""
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        depth += 1

    def down(further: int) -> object:
        return outcome(call) if further <= 0 else down(further - 1)

    try:
        return down(sys.getrecursionlimit() - depth - count - 4)
    except RecursionError:
        return RecursionError


def calls() -> list[Callable[[], object]]:
    rules = [Canonicalizer(), Canonicalizer(["/b/0", "/a"]), Canonicalizer(mode="rfc8785")]
    of_bodies = [lambda rule=rule, body=body: rule.fingerprint_json(body) for rule in rules for body in BODIES]
    of_values = [lambda rule=rule, value=value: rule.fingerprint(value) for rule in rules for value in VALUES]
    refused = [
        lambda: canonicalize({"a": [object()]}),
        lambda: canonicalize_json(b"[1,"),
        lambda: canonicalize([nested(513)]),
    ]
    return [*of_bodies, *of_values, *refused]  # fmt: skip


@pytest.mark.parametrize("call", calls(), ids=range(len(calls())))
def test_the_outcome_does_not_depend_on_the_depth_of_the_stack(call: Callable[[], object]) -> None:
    """A caller deep in its own stack gets the same fingerprint, never a raw one in place of a canonical one."""
    expected = outcome(call)
    found = {count: with_frames_left(count, call) for count in (*range(1, 60), 100, 300, 500, 700)}
    assert set(found.values()) <= {expected, RecursionError}
    assert [
        count for count, result in found.items() if result is RecursionError and count > FRAMES_NEEDED
    ] == []


@pytest.mark.parametrize("limit", [0, 640, 4300, 100_000])
def test_the_interpreters_limit_on_digits_changes_nothing(limit: int) -> None:
    """CAN-03: sys.set_int_max_str_digits belongs to the application; no setting of it shows here."""
    texts = [b"1" * 600, b"[1" + b"0" * 700 + b"]", b"1" * 4301, b'{"a":-' + b"9" * 50_000 + b"}"]
    values = [10**600, 10**700, 10**4301, -(10**5000) + 1]
    expected = [canonicalize_json(text) for text in texts], [canonicalize(value) for value in values]
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        found = [canonicalize_json(text) for text in texts], [canonicalize(value) for value in values]
    finally:
        sys.set_int_max_str_digits(before)
    assert found == expected


def test_a_million_digits_are_read_exactly() -> None:
    """A long literal is text to us, so its length is no danger, whatever the application allows."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        digits = b"7" * 1_000_000
        assert canonicalize_json(b"[" + digits + b"]") == b"[7." + digits[1:] + b"e+999999]"
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("mode", ["exact", "rfc8785"])
def test_an_exponent_may_have_any_number_of_leading_zeros(mode: Any) -> None:
    """Zeros in front are not digits that count; nor are they too many for int()."""
    zeros = b"0" * 10_000
    assert (
        canonicalize_json(b"[1e" + zeros + b"5,1E-" + zeros + b"1,1e+" + zeros + b"]", mode=mode)
        == b"[100000,0.1,1]"
    )
    assert canonicalize_json(b"0e-" + zeros + b"9", mode=mode) == b"0"


def test_caches_stay_within_their_bounds() -> None:
    """Names and literals that never repeat, and very long ones, do not pile up."""
    literals = EXACT.literals._texts
    for number in range(10_000):
        fingerprint_json(f'{{"key-{number}":{number}.25}}'.encode())
    fingerprint_json(b'{"' + b"k" * 1_000_000 + b'":1.' + b"5" * 1_000_000 + b"}")
    fingerprint(
        [{"k" * 1_000_000: 1}, [number / 7 for number in range(10_000)], [n / 8 for n in range(10_000)]]
    )
    assert 0 < len(literals) <= 8192
    assert max(map(len, literals)) <= 16
    assert 0 < len(EXACT.floats._texts) <= 8192
    assert 0 < len(_SHAPES._shapes) <= 1024
    assert max(len("".join(names)) for names in _SHAPES._shapes) <= 1 << 12
    wide = [{f"{'k' * 300}{number}-{place}": place for place in range(10)} for number in range(1000)]
    canonicalize(wide)
    assert sum(len("".join(names)) for names in _SHAPES._shapes) <= 1 << 19


def test_threads_share_a_rule() -> None:
    """Eight threads that fill and empty the same caches get the fingerprints that one gets alone."""
    bodies = [
        json.dumps({f"k{n % 50}": [n / 7, {"b": n, f"a{n}": str(n)}], "x": n}).encode() for n in range(2000)
    ]
    rule = Canonicalizer(["/x"])
    expected = [rule.fingerprint_json(body) for body in bodies]
    wrong: list[int] = []
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        order = list(range(len(bodies)))
        random.Random(seed).shuffle(order)
        barrier.wait()
        wrong.extend(n for n in order if rule.fingerprint_json(bodies[n]) != expected[n])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_no_exception_of_ours_never_leaves() -> None:
    """Any bytes whatever get a fingerprint."""
    source = random.Random(8785)
    alphabet = [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"u",
        b"d8",
        b"1",
        b"e",
        b".",
        b"-",
        b"\xff",
        b"\xc3\xa9",
        b" ",
    ]
    for _ in range(3000):
        fingerprint_json(b"".join(source.choices(alphabet, k=source.randrange(12))))  # fmt: skip
