"""What makes two requests the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore import Canonicalizer
from idemcore.http import Request
from idemcore.http.fingerprint_parts import is_json
from idemcore.http.request import request_fingerprinter

RULE = Canonicalizer()
FORM = "application/x-www-form-urlencoded"


def fp(*parts: object, rule: Canonicalizer = RULE) -> str:
    return request_fingerprinter(rule, Request(*parts)).current  # type: ignore[arg-type]


def query(text: str) -> str:
    return fp("POST", "/", text, "", b"")


def form(body: bytes) -> str:
    return fp("POST", "/", "", FORM, body)


@given(
    st.tuples(*[st.text(st.sampled_from("ab/|&=:0"), max_size=4)] * 2), st.binary(max_size=3), st.integers(0, 2)
)
def test_nothing_slides_from_one_part_into_the_next(texts: tuple[str, str], body: bytes, move: int) -> None:
    """CAN-07: moving characters from one part to its neighbour makes another request."""
    path, content_type = texts
    whole = fp("POST", path, "", "text/plain", body)
    if body[:move]:
        moved = fp("POST", path + body[:move].decode("latin-1"), "", "text/plain", body[move:])
        assert moved != whole
    assert fp("POST", path, content_type, "text/plain", body) != fp(
        "POST", path, "", "text/x", content_type.encode() + body
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a=1&b=2", "b=2&a=1", True),
        ("a=1&a=2", "a=2&a=1", False),
        ("a=+", "a=%20", True),
        ("a=%2B", "a=+", False),
        ("a=%ff", "a=%fe", False),
        ("a", "a=", False),
        ("", "a", False),
        ("a=&a=b&c=", "a=&b=c&b=", False),
        ("p[]=1&x=0&p[]=2", "x=0&p[]=1&p[]=2", True),
        ("p[]=1&p[]=2", "p[]=2&p[]=1", False),
        ("p[][a]=1&p[][b]=2&p[][a]=3", "p[][a]=1&p[][a]=3&p[][b]=2", False),
        ("a=1&&b=2", "a=1&b=2", False),
        ("%61=1", "a=1", True),
        ("A=1", "a=1", False),
    ],
)
def test_queries_and_forms_are_compared_by_their_fields(one: str, other: str, same: bool) -> None:
    """KEY-04, CAN-07: names may change places, what repeats a name may not; spelling does not count."""
    assert (query(one) == query(other)) is same
    assert (form(one.encode()) == form(other.encode())) is same


def test_more_fields_than_a_form_has_are_compared_as_they_came() -> None:
    """Ten million bytes of ampersands do not become ten million tuples."""
    many = b"&".join(b"f%d=1" % number for number in range(10_001))
    turned = b"&".join(reversed(many.split(b"&")))
    assert form(many) == form(many)
    assert form(many) != form(turned)


@pytest.mark.parametrize(
    ("media_type", "json"),
    [
        ("application/json", True),
        ("application/problem+json", True),
        ("text/json", False),
        ("application/jsonl", False),
        (FORM, False),
        ("", False),
    ],
)
def test_what_counts_as_json(media_type: str, json: bool) -> None:
    """RFC 6839, section 3.1."""
    assert is_json(media_type) is json


def test_parameters_and_case_of_the_media_type_do_not_count() -> None:
    """`charset=utf-8` with or without is one request; another type is another."""
    one = fp("POST", "/", "", "Application/JSON; charset=utf-8", b'{"a":1}')
    assert fp("POST", "/", "", "application/json", b'{"a":1.0}') == one
    assert fp("POST", "/", "", "application/vnd.a+json", b'{"a":1}') != one
    assert fp("POST", "/", "", "text/plain", b'{"a":1}') != one


def test_an_empty_body_is_not_an_empty_anything() -> None:
    """No body, `{}`, `null` and `""` are four requests."""
    bodies = (b"", b"{}", b"null", b'""', b"[]")
    assert len({fp("POST", "/", "", "application/json", body) for body in bodies}) == len(bodies)
    assert len({fp("POST", "/", "", kind, b"") for kind in ("", FORM, "application/json")}) == 3


def test_an_older_rule_still_compares() -> None:
    """CAN-09: a rule that is accepted answers under its own tag; another one does not."""
    older, request = (
        Canonicalizer(exclude=["x"]),
        Request("POST", "/", "", "application/json", b'{"a":1,"x":2}'),
    )
    newer = request_fingerprinter(Canonicalizer(accept=[older]), request)
    assert newer.under(older.tag) == request_fingerprinter(older, request).current
    assert newer.under("v9.unheard-of") is None


def test_a_request_does_not_show_itself() -> None:
    """SEC: neither path nor body in a traceback."""
    assert "secret" not in repr(Request("POST", "/secret", "secret", "secret", b"secret"))
