"""Bodies that a retry never repeats byte for byte, and what of a request does not count."""

from __future__ import annotations

import gzip
import zlib
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore import Canonicalizer
from idemcore.errors import ConfigurationError
from idemcore.http import HTTPPolicy, Request, query_parameters
from idemcore.http.multipart import canonical_multipart
from idemcore.http.request import request_fingerprinter

FORM = "application/x-www-form-urlencoded"


def fp(
    content_type: str, body: bytes, *, rule: Canonicalizer | None = None, encoding: str = "", query: str = ""
) -> str:
    request = Request("POST", "/", query, content_type, body, encoding)
    return request_fingerprinter(rule or Canonicalizer(), request, 100_000).current


def multipart(boundary: str, *parts: tuple[str, bytes], quoted: bool = False) -> tuple[str, bytes]:
    body = (
        b"".join(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n" for head, content in parts)
        + f"--{boundary}--\r\n".encode()
    )
    return f"multipart/form-data; boundary={chr(34) + boundary + chr(34) if quoted else boundary}", body


def field(name: str, filename: str = "", kind: str = "") -> str:
    disposition = f'Content-Disposition: form-data; name="{name}"' + (
        f'; filename="{filename}"' if filename else ""
    )
    return disposition + (f"\r\nContent-Type: {kind}" if kind else "")


AMOUNT, FILE = (field("amount"), b"10"), (field("scan", "a.pdf", "application/pdf"), b"\x00\r\n--content\r\n")


def test_a_new_boundary_is_the_same_request() -> None:
    """HTT-05: HTTP libraries draw one for each attempt."""
    one = fp(*multipart("aaaa", AMOUNT, FILE))
    assert fp(*multipart("bbbb", AMOUNT, FILE)) == one
    assert fp(*multipart("with space ok", AMOUNT, FILE, quoted=True)) == one


@pytest.mark.parametrize(
    "parts",
    [
        (FILE, AMOUNT),
        (AMOUNT,),
        (AMOUNT, FILE, FILE),
        ((field("amount"), b"11"), FILE),
        ((field("amounT"), b"10"), FILE),
        (AMOUNT, (FILE[0], FILE[1] + b" ")),
        (AMOUNT, (field("scan", "b.pdf", "application/pdf"), FILE[1])),
        (AMOUNT, (field("scan", "a.pdf", "image/png"), FILE[1])),
    ],
)
def test_any_other_part_is_another_request(parts: tuple[tuple[str, bytes], ...]) -> None:
    """HTT-05: content, name, file name, type, order and number of the parts count."""
    assert fp(*multipart("aaaa", *parts)) != fp(*multipart("aaaa", AMOUNT, FILE))


@pytest.mark.parametrize(
    ("content_type", "change"),
    [
        ("multipart/form-data", None),
        ("multipart/form-data; boundary=", None),
        ("multipart/form-data; boundary=é", None),
        ("multipart/form-data; boundary=other", None),
        (None, (b"\r\n", b"\n")),
        (None, (b"--aaaa--\r\n", b"")),
        (None, (b"--aaaa--\r\n", b"--aaaa--\r\nepilogue")),
        (None, (b'--aaaa\r\nContent-Disposition: form-data; name="amount"', b"preamble\r\n--aaaa\r\n")),
        (None, (b"--aaaa\r\n", b"--aaaa \r\n")),
        (None, (b"\r\n\r\n10", b"\r\n10")),
    ],
)
def test_what_is_not_strictly_multipart_is_compared_as_it_came(
    content_type: str | None, change: tuple[bytes, bytes] | None
) -> None:
    """The same bytes still replay, and other bytes never do."""
    usual, body = multipart("aaaa", AMOUNT, FILE)
    body = body.replace(*change) if change else body
    kind = content_type or usual
    assert fp(kind, body) == fp(kind, body)
    assert fp(kind, body) != fp(kind, body.replace(b"10", b"11"))
    assert fp(kind, body) != fp(usual, multipart("aaaa", AMOUNT, FILE)[1])


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.binary(max_size=8)), max_size=4),
       st.lists(st.tuples(st.sampled_from(["a", "b"]), st.binary(max_size=8)), max_size=4))  # fmt: skip
def test_two_forms_are_one_only_if_their_parts_are(
    one: list[tuple[str, bytes]], other: list[tuple[str, bytes]]
) -> None:
    """CAN-07: nothing slides from one part into the next."""
    prints = [
        fp(*multipart("q8w7", *((field(name), content) for name, content in parts))) for parts in (one, other)
    ]
    assert (prints[0] == prints[1]) == (one == other)


@pytest.mark.parametrize("piece", [b"%41", b"%", b"%4", b"a%", b"%zz%41%4", b"+%2B", b"a"])
def test_a_long_field_is_decoded_as_a_short_one(piece: bytes) -> None:
    """CAN-07: it is decoded in slices, and none of them ends inside of an escape."""
    for shift in range(5):
        text = b"a" * shift + piece * (10_000 // len(piece))
        plain = unquote_to_bytes(text.replace(b"+", b" "))
        spelled = b"".join(b"%%%02x" % byte for byte in plain)
        assert fp(FORM, b"f=" + text) == fp(FORM, b"f=" + spelled)
        assert fp(FORM, b"f=" + text) != fp(FORM, b"f=" + spelled[:-3])


def test_packed_again_is_the_same_request() -> None:
    """Gzip's header holds the time of packing and its level; what was packed is what counts."""
    body = b'{"amount": 10, "note": "' + b"x" * 1000 + b'"}'
    packed = [gzip.compress(body, level, mtime=level) for level in (1, 9)]
    assert packed[0] != packed[1]
    one = fp("application/json", packed[0], encoding="gzip")
    assert fp("application/json", packed[1], encoding=" GZIP ") == one
    assert fp("application/json", gzip.compress(body.replace(b"10,", b"10.0,")), encoding="gzip") == one
    assert fp("application/json", gzip.compress(body.replace(b"10,", b"11,")), encoding="gzip") != one
    assert fp("application/json", body) != one


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"no gzip"),
        ("gzip", gzip.compress(b"x")[:-1]),
        ("gzip", gzip.compress(b"x") * 2),
        ("gzip", gzip.compress(bytes(100_001), mtime=0)),
        ("deflate", zlib.compress(b"x")),
        ("br", b"x"),
        ("gzip, gzip", gzip.compress(b"x")),
    ],
)
def test_what_cannot_be_unpacked_is_compared_packed(encoding: str, body: bytes) -> None:
    """A bomb, too: no more is unpacked than a body may have."""
    assert fp("application/json", body, encoding=encoding) == fp("application/json", body, encoding=encoding)
    assert fp("application/json", body, encoding=encoding) != fp(
        "application/json", body + b"x", encoding=encoding
    )


def test_excluded_names_are_left_out_of_forms_too() -> None:
    """CAN-06: one meaning of `exclude`, whatever the body is written in; nested pointers name no field."""
    rule = Canonicalizer(exclude=["csrf", "/a/b"])
    assert fp(FORM, b"amount=1&csrf=2", rule=rule) == fp(FORM, b"csrf=3&amount=1", rule=rule)
    assert fp(FORM, b"amount=1&csrf=2", rule=rule) != fp(FORM, b"amount=2&csrf=2", rule=rule)
    assert fp(FORM, b"amount=1&b=2", rule=rule) != fp(FORM, b"amount=1&b=3", rule=rule)
    parts = [multipart("aaaa", AMOUNT, (field("csrf"), value)) for value in (b"1", b"2")]
    assert fp(*parts[0], rule=rule) == fp(*parts[1], rule=rule)


def test_excluded_parameters_are_part_of_the_rule() -> None:
    """CAN-09: a rule that leaves out other parameters has another tag, and names no member of a body."""
    policy = HTTPPolicy(exclude_query=["trace", "a/b~c"])
    rule = policy.rule()
    assert rule.tag != Canonicalizer().tag
    assert fp("", b"", rule=rule, query="a=1&trace=2") == fp("", b"", rule=rule, query="trace=3&trace=4&a=1")
    assert fp("", b"", rule=rule, query="a/b~c=2") == fp("", b"", rule=rule)
    assert fp("", b"", rule=rule, query="a=1") != fp("", b"", rule=rule, query="a=2")
    for content_type in ("application/json", FORM):
        one, other = (b'{"trace":1}', b'{"trace":2}') if content_type != FORM else (b"trace=1", b"trace=2")
        assert fp(content_type, one, rule=rule) != fp(content_type, other, rule=rule)


def test_a_rule_of_ones_own_stands_alone() -> None:
    """SEC-03, CAN-09: a key for digests and older rules come with a Canonicalizer, and nothing beside it."""
    rule = Canonicalizer(key=b"0123456789abcdef", key_id="k1", exclude=query_parameters("trace"))
    assert HTTPPolicy(canonicalizer=rule).rule() is rule
    assert fp("", b"", rule=rule, query="trace=1") == fp("", b"", rule=rule)
    other = Canonicalizer(key=b"0123456789abcdeX", key_id="k1", exclude=query_parameters("trace"))
    assert fp("", b"1234", rule=rule) != fp("", b"1234", rule=other)
    for wrong in (
        {"canonicalizer": rule, "exclude": ["a"]},
        {"canonicalizer": rule, "exclude_query": ["a"]},
        {"canonicalizer": Canonicalizer(on_invalid="reject")},
        {"canonicalizer": "exact"},
    ):
        with pytest.raises(ConfigurationError):
            HTTPPolicy(**wrong)  # type: ignore[arg-type]


def test_one_body_under_two_boundaries_is_two_requests() -> None:
    """HTT-05: bytes that hold 10 under one boundary and 10,000 under another are never the same request."""
    one, other = multipart("A", (field("amount"), b"10")), multipart("B", (field("amount"), b"10000"))
    both = one[1] + other[1]
    assert fp(one[0], both) != fp(other[0], both)


def spooled(content_type: str, *chunks: bytes) -> bytes | None:
    return canonical_multipart(content_type, chunks, frozenset())


@pytest.mark.parametrize(
    "parameters",
    [
        "boundary=aaaa; boundary=bbbb",
        'boundary=""; boundary=aaaa',
        "boundary=bbbb; BOUNDARY=aaaa",
        "boundary*=utf-8''bbbb; boundary=aaaa",
        "boundary=aaaa; boundary*0=bbbb",
        "boundary*=aaaa",
        'x="; boundary=aaaa"',
        "boundary=aaaa, multipart/form-data",
        "boundary=aaaa;=x",
        "boundary = aaaa",
        "boundary=aaaa=b",
        'boundary="aa\\aa"',
    ],
)
def test_a_boundary_that_parsers_may_read_differently_is_not_used(parameters: str) -> None:
    """HTT-05: where two frameworks find two boundaries, the bytes and the whole header are compared."""
    _, body = multipart("aaaa", AMOUNT, FILE)
    assert spooled(f"multipart/form-data; {parameters}", body) is None
    kind = f"multipart/form-data; {parameters}"
    assert fp(kind, body) == fp(kind, body)
    assert fp(kind, body) != fp(kind + "; more=1", body)


def test_other_parameters_hide_no_boundary() -> None:
    """What stands in quotes is no parameter."""
    usual, body = multipart("aaaa", AMOUNT, FILE)
    kind = 'multipart/form-data; x="; boundary=bbbb"; charset=utf-8; Boundary="aaaa" '
    assert fp(kind, body) == fp(usual, body)


@pytest.mark.parametrize("line_break", [b"\n", b"\r", b"\n\n", b"\r\n\r"])
@pytest.mark.parametrize("tail", [b"--\r\n", b"\r\nX: 1\r\n\r\n10", b""])
def test_a_delimiter_after_a_bare_line_break_is_compared_as_it_came(line_break: bytes, tail: bytes) -> None:
    """HTT-05: some parsers cut there, however the body is cut into chunks on its way here."""
    kind, body = multipart("aaaa", (field("note"), b"x" + line_break + b"--aaaa" + tail))
    for size in (1, 2, 5, 7, 8, 9, len(body)):
        assert spooled(kind, *(body[at : at + size] for at in range(0, len(body), size))) is None
    other = multipart("bbbb", (field("note"), b"x" + line_break + b"--aaaa" + tail))
    assert fp(kind, body) != fp(*other)


def test_a_body_is_the_same_however_it_is_cut() -> None:
    """A strict delimiter is one in chunks of any size, and never taken for one after a bare LF."""
    kind, body = multipart("aaaa", AMOUNT, FILE, (field("note"), b"\n-\n--aaa\r--aab x--aaaa"))
    whole = spooled(kind, body)
    assert whole is not None
    for size in range(1, len(body)):
        assert spooled(kind, *(body[at : at + size] for at in range(0, len(body), size))) == whole


@pytest.mark.parametrize(
    "head", [b"A: 1\n\nB: 2", b"A: 1\r\rB: 2", b"A: 1\r\n folded", b"A : 1", b"no field", b"A: \x0b1"]
)
def test_a_head_that_parsers_may_read_differently_is_compared_as_it_came(head: bytes) -> None:
    """Where some parsers end a head early, what follows is content: its lines are neither sorted nor folded."""
    assert spooled("multipart/form-data; boundary=q", b"--q\r\n" + head + b"\r\n\r\nx\r\n--q--") is None


def test_the_order_of_a_repeated_field_counts() -> None:
    """Parsers take the first or the last; fields of different names come in any order."""
    one, other = field("a"), field("b")
    both = [fp(*multipart("q", (head, b"1"))) for head in (f"{one}\r\n{other}", f"{other}\r\n{one}")]
    assert both[0] != both[1]
    apart = [fp(*multipart("q", (head, b"1"))) for head in (f"{one}\r\nX: 1", f"X: 1\r\n{one}")]
    assert apart[0] == apart[1]


@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream", FORM])
def test_bytes_under_another_coding_are_another_request(content_type: str) -> None:
    """HTT-05: what they mean hangs on the coding; one that is not opened is compared by its name."""
    body = b'{"a":1}'
    seen = {fp(content_type, body, encoding=encoding) for encoding in ("", "br", "deflate", "zstd", "gzip, br")}
    assert len(seen) == 5
    assert fp(content_type, body, encoding=" BR ") == fp(content_type, body, encoding="br")


def test_x_gzip_is_gzip() -> None:
    """RFC 9110, section 8.4.1.3: a recipient takes both for the same."""
    packed = [gzip.compress(b'{"a":1}', mtime=when) for when in (1, 2)]
    assert fp("application/json", packed[0], encoding="X-GZIP") == fp(
        "application/json", packed[1], encoding="gzip"
    )
    broken = b"no gzip"
    assert fp("text/plain", broken, encoding="x-gzip") == fp("text/plain", broken, encoding="gzip")


def test_identity_is_no_coding() -> None:
    """RFC 9110, section 12.5.3: it says that nothing was encoded, and a retry may leave it out."""
    assert fp("application/json", b'{"a":1}', encoding="identity") == fp("application/json", b'{"a":1.0}')


@pytest.mark.parametrize("spelt", [r"\u0000query", r"\u0000\u0071uery"])
def test_an_excluded_parameter_leaves_no_member_of_a_body_out(spelt: str) -> None:
    """FP-02: a client chose the name under which a rule holds its parameters, and two bodies were one."""
    rule = Canonicalizer(exclude=query_parameters("utm"))
    bodies = [f'{{"{spelt}":{{"utm":{value}}}}}'.encode() for value in (1, 2)]
    assert fp("application/json", bodies[0], rule=rule) != fp("application/json", bodies[1], rule=rule)
    assert fp("application/json", b" " + bodies[0], rule=rule) == fp("application/json", bodies[0], rule=rule)
    assert fp("application/json", bodies[0], rule=rule, query="utm=1") == fp(
        "application/json", bodies[0], rule=rule
    )
