"""What is no part of the request: JSON Pointers with ``*``, and bare names of top-level members."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

import pytest

from idemcore.canonical import Canonicalizer, canonicalize, canonicalize_json, fingerprint, fingerprint_json
from idemcore.errors import CanonicalizationError, ConfigurationError

BODY = (
    b'{"trace_id":"t","lines":[{"sku":"a","ts":1},{"sku":"b","ts":2}],"auth":{"token":"x","user":"u"},"a/b":1}'
)

WHOLE = (
    '{"a/b":1,"auth":{"token":"x","user":"u"},"lines":[{"sku":"a","ts":1},{"sku":"b","ts":2}],"trace_id":"t"}'
)


@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        ([], WHOLE),
        (["trace_id", "lines", "auth"], '{"a/b":1}'),
        (["/trace_id", "/auth/token", "/lines/*/ts", "/a~1b"],
         '{"auth":{"user":"u"},"lines":[{"sku":"a"},{"sku":"b"}]}'),
        (["/lines/0", "/auth", "/trace_id"], '{"a/b":1,"lines":[{"sku":"b","ts":2}]}'),
        (["/lines/0/ts", "/lines/*/sku", "/auth", "/trace_id"], '{"a/b":1,"lines":[{},{"ts":2}]}'),
        (["/lines/*", "/auth/*", "trace_id"], '{"a/b":1,"auth":{},"lines":[]}'),
        (["/*/*/ts", "/*/user", "/trace_id"],
         '{"a/b":1,"auth":{"token":"x"},"lines":[{"sku":"a"},{"sku":"b"}]}'),
        (["/*"], "{}"),
        (["/lines/-", "/lines/00", "/lines/2", "/lines/sku", "/none/at/all", "/trace_id/x", "auth.token"],
         WHOLE),
    ],
)  # fmt: skip
def test_what_is_excluded_is_left_out_and_nothing_else(exclude: list[str], expected: str) -> None:
    """CAN-06: at any declared depth; a path that the document does not have is no error."""
    assert canonicalize_json(BODY, exclude=exclude).decode() == expected
    assert canonicalize(json.loads(BODY), exclude=exclude).decode() == expected


def test_a_retry_with_a_fresh_stamp_and_token_is_the_same_request() -> None:
    """CAN-06: sent_at and auth.token change on each attempt; amount, and a token elsewhere, still count."""

    def of(sent_at: int, token: str, amount: int = 1, other: str = "o") -> str:
        body = f'{{"sent_at":{sent_at},"auth":{{"token":"{token}"}},"amount":{amount},"token":"{other}"}}'
        return fingerprint_json(body.encode(), exclude=["sent_at", "/auth/token"])

    assert of(1, "a") == of(2, "b")
    assert of(1, "a") != of(1, "a", amount=2)
    assert of(1, "a") != of(1, "a", other="p")


@pytest.mark.parametrize(
    ("exclude", "body", "expected"),
    [
        (["/~01"], '{"~1":1,"~01":2}', '{"~01":2}'),
        (["/~1~0"], '{"/~":1}', "{}"),
        (["/"], '{"":1,"a":2}', '{"a":2}'),
        (["/a//b"], '{"a":{"":{"b":1,"c":2}}}', '{"a":{"":{"c":2}}}'),
        (["a~b"], '{"a~b":1,"a":2}', '{"a":2}'),
        (["/0"], '{"0":1,"1":2}', '{"1":2}'),
        (["/0"], "[1,2]", "[2]"),
        (["/01"], '{"01":1}', "{}"),
        (["/é"], '{"\\u00e9":1}', "{}"),
        (["/a/b"], '{"a":"b"}', '{"a":"b"}'),
        (["/a"], '"a"', '"a"'),
    ],
)
def test_pointers_are_read_as_rfc_6901_says(exclude: list[str], body: str, expected: str) -> None:
    """~1 is a slash and ~0 a tilde, in that order; empty names and numeric names are names."""
    assert canonicalize_json(body.encode(), exclude=exclude).decode() == expected


@pytest.mark.parametrize(
    "exclude",
    ["/a", "trace_id", [""], ["*"], ["a/b"], ["/a~"], ["/a~2"], ["~2/"], ["/\ud800"], [1], [None], [["/a"]],
     5, None, ["/a" * 101]],
    ids=lambda value: ascii(value)[:30],
)  # fmt: skip
def test_a_malformed_pointer_is_an_error_when_it_is_set(exclude: Any) -> None:
    """Not at the first request: a rule that cannot be meant is refused where it is written."""
    with pytest.raises(ConfigurationError):
        Canonicalizer(exclude=exclude)
    with pytest.raises(ConfigurationError):
        fingerprint({}, exclude=exclude)


@pytest.mark.parametrize("exclude", [("b", "/a"), ["/a", "/b", "a"], {"a", "/b"}, iter(["a", "b"])], ids=str)
def test_order_repeats_and_spelling_of_the_set_do_not_count(exclude: Iterable[str]) -> None:
    """One set of pointers is one rule, with one tag."""
    assert Canonicalizer(exclude).tag == Canonicalizer(["/a", "/b"]).tag


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"x":1,"x":2}',
        b'{"a":1,"x":{"b":1,"b":2}}',
        b'{"a":1,"x":["\\ud800"]}',
        b'{"a":1,"x":{"\\udfff":1}}',
        b'{"a":1,"x":' + b"[" * 512 + b"]" * 512 + b"}",
        b'{"a":1,"x":1e1000000000000}',
        b'{"a":1,"x":NaN}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_left_out_still_has_to_be_sound(body: bytes) -> None:
    """CAN-05: a duplicate under an excluded field too makes the body raw, so do depth and surrogates."""
    with pytest.raises(CanonicalizationError):
        canonicalize_json(body, exclude=["/x"])
    assert canonicalize_json(b'{"a":1,"x":{"\\"b":["\\\\\\"",1e5]}}', exclude=["/x"]) == b'{"a":1}'


def test_an_excluded_argument_is_not_even_looked_at() -> None:
    """FUN-06: a session has no canonical form and need not have one, by position or by keyword."""
    arguments = {"n": 5, "session": object()}
    assert fingerprint(arguments, exclude={"session"}) == fingerprint({"n": 5.0}, exclude={"session"})
    with pytest.raises(CanonicalizationError, match=r"\$\.session"):
        fingerprint(arguments)


def test_the_callers_objects_stay_as_they_are() -> None:
    """FUN-01: leaving something out copies; it never deletes from what the caller holds."""
    value = {"a": [1, {"b": 2, "c": 3}], "d": {"e": 1}}
    canonicalize(value, exclude=["/a/*/b", "/a/0", "/d/e", "/d"])
    assert value == {"a": [1, {"b": 2, "c": 3}], "d": {"e": 1}}


def test_two_exclusion_sets_are_two_rules() -> None:
    """The set is part of the tag, so records made under another set are never compared by accident."""
    body = b'{"a":1}'
    tags = {
        fingerprint_json(body, exclude=exclude).partition(":")[0] for exclude in ([], ["a"], ["b"], ["a", "b"])
    }
    assert len(tags) == 4


def test_the_callers_value_is_left_as_it_was() -> None:
    """CAN-06: what is left out is left out of copies; each container is the same one with the same content."""
    line = {"ts": 1, "sku": "a", "tags": {"x", "y"}}
    value: dict[str, Any] = {"z": 1, "lines": [line, [line, {"ts": bytearray(b"b")}]], "a": {"b": (1, [2])}}
    before = copy.deepcopy(value)
    order = [list(value), list(line)]
    held = [value["lines"], value["lines"][0], value["lines"][1], value["a"], value["a"]["b"][1]]
    for exclude in ((), ("/lines/*/ts", "/a/b/1/0", "z"), ("/*/*/*", "/a")):
        canonicalize(value, exclude=exclude)
        fingerprint(value, exclude=exclude, mode="rfc8785")
    with pytest.raises(CanonicalizationError):
        canonicalize([value, object()], exclude=["/0/lines/0"])
    assert value == before
    assert [list(value), list(line)] == order
    found = [value["lines"], value["lines"][0], value["lines"][1], value["a"], value["a"]["b"][1]]
    assert all(one is other for one, other in zip(found, held, strict=True))
