"""What is kept of an answer, and what is given back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from idemcore.errors import ConfigurationError, NotReplayable, RecordUnreadable
from idemcore.http.answer import HTTPAnswer, from_outcome, kept_answer, to_meta
from idemcore.http.coding import MAX_DECODED, readable
from idemcore.http.headers import HeaderFilter
from idemcore.http.kept_answers import AnswerHead
from idemcore.record import Kind, Outcome

MOMENTS = [
    "Connection",
    "Keep-Alive",
    "Transfer-Encoding",
    "TE",
    "Trailer",
    "Upgrade",
    "Date",
    "Server",
    "Set-Cookie",
    "WWW-Authenticate",
    "Proxy-Authenticate",
    "X-Request-Id",
    "X-Correlation-Id",
    "RateLimit",
    "RateLimit-Remaining",
    "X-RateLimit-Limit",
    "traceparent",
    "tracestate",
    "Server-Timing",
    "Age",
    "Access-Control-Allow-Origin",
    "access-control-expose-headers",
]
RESULTS = [
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Content-Language",
    "Content-Disposition",
    "Location",
    "ETag",
    "Last-Modified",
    "Link",
    "Vary",
    "Cache-Control",
    "Expires",
    "Retry-After",
    "X-Anything",
    "Digest",
]


MARKER = "Idempotent-Replayed"
kept_headers = HeaderFilter().kept


def outcome(meta: dict[str, object], kind: Kind = "http") -> Outcome:
    return Outcome(kind, b"body", meta, datetime(2024, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("name", MOMENTS)
def test_what_belongs_to_one_exchange_is_left_out(name: str) -> None:
    """REP-02: whatever the case of its name."""
    assert kept_headers([(name.upper(), "x"), (name.lower(), "x"), ("X-Kept", "y")]) == [("X-Kept", "y")]


@pytest.mark.parametrize("name", RESULTS)
def test_what_describes_the_result_is_kept(name: str) -> None:
    """REP-01: everything that is not known to belong to one exchange."""
    assert kept_headers([(name, "x")]) == [(name, "x")]


def test_what_connection_names_is_left_out() -> None:
    """RFC 9110, section 7.6.1: Connection names further fields that end at the next hop."""
    fields = [("Connection", "close, X-Hop"), ("X-Hop", "1"), ("x-hop", "2"), ("X-End", "3")]
    assert kept_headers(fields) == [("X-End", "3")]


def test_repeats_keep_their_order() -> None:
    """REP-01: header fields come back in the order in which they were sent."""
    fields = [("Link", "b"), ("X-A", "1"), ("link", "a"), ("Link", "b")]
    assert kept_headers(fields) == fields


@pytest.mark.parametrize(("status", "kept"), [("200 OK", "4"), ("304 Not Modified", "99")])
def test_a_wrong_length_is_put_right(status: str, kept: str) -> None:
    """REP-04: but a 304 announces what it stands for (RFC 9110, section 8.6)."""
    assert to_meta(status, [("content-length", "99")], 4)["headers"] == [("content-length", kept)]


def test_an_answer_comes_back_marked() -> None:
    """REP-07: a replay says that it is one."""
    answer = from_outcome(outcome({"status": "201 Made", "headers": [["A", "1"]]}), "X-Again")
    assert answer == HTTPAnswer("201 Made", [("A", "1"), ("X-Again", "true")], b"body", is_replay=True)
    assert answer.is_replay
    assert answer.status == 201
    assert answer.header("a") == "1"
    assert answer.header("b") is None


@pytest.mark.parametrize(
    "meta",
    [{}, {"status": 200, "headers": []}, {"status": "200 OK"}, {"status": "200 OK", "headers": {}},
     {"status": "OK", "headers": []}, {"status": "200 OK", "headers": [1]},
     {"status": "200 OK", "headers": [["a", "b", "c"]]}, {"status": "200 OK", "headers": [None]},
     {"status": "200 OK", "headers": [["a", "b\r\nc: d"]]}, {"status": "200 OK", "headers": [["", "b"]]},
     {"status": "200 OK", "headers": [["a", "\u20ac"]]}, {"status": "200 OK", "headers": [["a:", "b"]]}],
)  # fmt: skip
def test_a_damaged_record_is_unreadable(meta: dict[str, object]) -> None:
    """SEC-02: nothing is guessed."""
    with pytest.raises(RecordUnreadable):
        from_outcome(outcome(meta), MARKER)


def test_another_kind_of_outcome_is_no_answer() -> None:
    """What the application recorded by itself is done, and no HTTP answer."""
    with pytest.raises(NotReplayable):
        from_outcome(outcome({"status": "200 OK", "headers": []}, "returned"), MARKER)


def test_an_answer_made_by_hand_is_kept_as_it_would_be_given() -> None:
    """REP-04: an operator's answer has its length put right and comes back like any other."""
    kept = kept_answer("201 CREATED", (("A", "1"), ("Content-Length", "9")), b"done")
    meta = {"status": "201 CREATED", "headers": [["A", "1"], ["Content-Length", "4"]]}
    assert (kept.kind, json.loads(kept.meta), kept.body) == ("http", meta, b"done")


@pytest.mark.parametrize(
    "wrong",
    [{"status": "Created"}, {"status": 201}, {"status": "201 Made\n"}, {"headers": {"AB": "x"}},
     {"headers": None}, {"headers": ["AB"]}, {"headers": [("A", 1)]}, {"headers": [("A", "1\r\nB: 2")]},
     {"body": "text"}, {"body": None}],
    ids=str,
)  # fmt: skip
def test_an_answer_made_by_hand_that_could_not_be_given_is_refused(wrong: dict[str, Any]) -> None:
    """SEC-02: the operator is told now, and not every retry of a client's later."""
    with pytest.raises(ConfigurationError, match="This is no HTTP answer"):
        kept_answer(**{"status": "201 CREATED", "headers": [], "body": b"", **wrong})


@pytest.mark.parametrize(
    ("value", "size"),
    [("0", 0), ("12", 12), ("007", 7), ("-5", None), ("+5", None), ("5.0", None), ("", None), ("٣", None),
     ("x", None), ("0" * 5000 + "5", 5), ("9" * 5000, int("9" * 19))],
    ids=lambda part: str(part)[:9],
)  # fmt: skip
def test_a_length_is_digits_only(value: str, size: int | None) -> None:
    """RFC 9110, section 8.6: what is no number announces nothing, on every adapter."""
    assert AnswerHead("200 OK", [("A", "1"), ("content-LENGTH", value)]).announced_size == size
    assert AnswerHead("200 OK", [("A", "1")]).announced_size is None


@pytest.mark.parametrize(
    ("status", "bodiless"),
    [("100 Continue", True), ("204 No Content", True), ("304 Not Modified", True), ("200 OK", False),
     ("205 Reset Content", False), ("0 Odd", False)],
)  # fmt: skip
def test_some_statuses_have_no_body(status: str, bodiless: bool) -> None:
    """RFC 9110, section 6.4.1: 1xx, 204 and 304 end with their head."""
    assert AnswerHead(status, []).bodiless == bodiless


def packed(body: bytes, **headers: str) -> HTTPAnswer:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return HTTPAnswer("200 OK", [("Content-Encoding", "gzip"), *fields], body)


@pytest.mark.parametrize(
    ("accepts", "asked_for"),
    [("", False), ("gzip", True), ("GZIP ; q=0.5", True), ("x-gzip", True), ("br, *", True), ("*;q=0", False),
     ("gzip;q=0", False), ("gzip; q=0.000, *", False), ("identity", False), ("br", False), (" , ", False)],
)  # fmt: skip
def test_gzip_is_for_who_asks(accepts: str, asked_for: bool) -> None:
    """REP-04: Accept-Encoding decides (RFC 9110, section 12.5.3), and none at all means a plain client."""
    import gzip

    answer = packed(gzip.compress(b"plain"), ETag='W/"1"', Content_Length="25")
    got = readable(answer, accepts)
    if asked_for:
        assert got is answer
    else:
        assert got == HTTPAnswer("200 OK", [("ETag", 'W/"1"'), ("Content-Length", "5")], b"plain")


def test_what_cannot_be_unpacked_is_given_as_it_is() -> None:
    """Damaged, cut off, followed by something, or a bomb: the kept bytes are the answer."""
    import gzip

    whole = gzip.compress(b"plain")
    for body in (b"", b"no gzip", whole[:-1], whole + b"more", gzip.compress(bytes(MAX_DECODED + 1))):
        answer = packed(body)
        assert readable(answer, "") is answer
    other = HTTPAnswer("200 OK", [("Content-Encoding", "br")], b"x")
    assert readable(other, "") is other


def test_a_filter_of_ones_own() -> None:
    """Names may be kept or dropped beside the usual ones, whatever their case."""
    kept = HeaderFilter(keep=["X-Request-ID", "set-cookie"], drop=["ETag"]).kept
    assert kept([("x-request-id", "1"), ("Set-Cookie", "a"), ("etag", "2"), ("Date", "d")]) == [
        ("x-request-id", "1"),
        ("Set-Cookie", "a"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"keep": "ETag"},
        {"drop": ["no name"]},
        {"drop": [1]},
        {"keep": ["a"], "drop": ["A"]},
        {"keep": ["Transfer-Encoding"]},
    ],
)
def test_a_wrong_filter_is_refused(wrong: dict[str, Any]) -> None:
    """At start-up; and what ends with its connection is never kept."""
    with pytest.raises(ConfigurationError):
        HeaderFilter(**wrong)
