"""Request bodies: how they are compared, and that the application still finds them."""

from __future__ import annotations

from tests.adapters.http import Http
from tests.adapters.scenario import scenario

FORM = "application/x-www-form-urlencoded"


@scenario()
def the_application_still_reads_its_body(http: Http) -> None:
    """HTT-01: the body is read once and put back, whatever it is."""
    for number, body in enumerate((b'{"a":1}', b"", b"\x00\xff" * 1000, b"x" * 200_000)):
        got = http.post("/echo", body=body, key=f"k{number}", content_type="application/octet-stream")
        assert got.body == b"POST /echo? " + body


@scenario()
def a_body_spelled_differently_is_the_same(http: Http) -> None:
    """CAN-01, CAN-02: order of members, spacing, escapes and 10 for 10.0 do not count; array order does."""
    http.post(body='{"a":10,"b":{"x":"é","y":[1,2]}}'.encode())
    assert http.post(body=rb'{ "b": {"y":[1,2], "x":"\u00e9"}, "a": 10.0 }').replayed
    assert http.post(body='{"a":10,"b":{"x":"é","y":[2,1]}}'.encode()).status == 422
    assert http.post(body=b"{}", key="charset", content_type="application/json").status == 201
    assert http.post(body=b"{ }", key="charset", content_type="application/JSON; charset=utf-8").replayed
    assert http.post(body=b'{"a":1}', key="suffix", content_type="application/vnd.shop+json").status == 201
    assert http.post(body=b'{"a":1.0}', key="suffix", content_type="application/vnd.shop+json").replayed


@scenario()
def what_is_no_json_is_compared_as_it_came(http: Http) -> None:
    """CAN-05: broken and ambiguous JSON is left to the application, byte for byte, and never a 500."""
    for number, body in enumerate((b'{"amount":1', b'{"a":1,"a":1000}', b"\xff\xfe", b"NaN", b"[" * 2000)):
        assert http.post(body=body, key=f"k{number}").status == 201
        assert http.post(body=body, key=f"k{number}").replayed
    assert http.post(body=b'{"a":1000}', key="k1").status == 422


@scenario()
def forms_are_compared_by_their_fields(http: Http) -> None:
    """Fields may change places and spelling, repeats and bracketed names may not."""
    http.post(body=b"a=1&b=x+y", content_type=FORM)
    assert http.post(body=b"b=x%20y&a=%31", content_type=FORM).replayed
    assert http.post(body=b"a=1&b=x%2By", content_type=FORM).status == 422
    http.post(body=b"p[]=1&q=0&p[]=2", content_type=FORM, key="k2")
    assert http.post(body=b"q=0&p[]=1&p[]=2", content_type=FORM, key="k2").replayed
    assert http.post(body=b"p[]=2&p[]=1&q=0", content_type=FORM, key="k2").status == 422


@scenario()
def chunked_bodies_differ_by_their_content(http: Http) -> None:
    """HTT-02: a body without a length is read to its end, compared, and there for the application."""
    first = http.post("/echo", body=[b'{"amo', b'unt":10}'])
    if first.status == 411:  # a server that does not say where the body ends: refused, never guessed
        assert first.code == "request_length_required"
        assert http.runs == 0
        return
    assert first.body == b'POST /echo? {"amount":10}'
    assert http.post("/echo", body=[b'{"amount"', b":10.0}"]).replayed
    assert http.post("/echo", body=b'{"amount":10}').replayed
    assert http.post("/echo", body=[b'{"amount":9', b"000}"]).code == "idempotency_key_reuse"
    assert http.runs == 1


@scenario(max_request_bytes=100)
def a_body_over_the_limit_is_refused(http: Http) -> None:
    """413 before any claim, with a length or without; up to the limit it is served; no key, no limit."""
    assert http.post(body=b"x" * 100, content_type="text/plain").status == 201
    for body in (b"x" * 101, [b"x" * 60, b"x" * 60]):
        got = http.post(key="k2", body=body, content_type="text/plain")
        assert got.status == 413
        assert got.code == "request_too_large"
        assert got.problem["retry"] == "fix_request"
    assert http.post(key="k2", body=b"x", content_type="text/plain").status == 201
    assert http.post(key=None, body=b"x" * 101, content_type="text/plain").status == 201


@scenario(max_response_bytes=10)
def the_answer_limit_is_the_routes_own(http: Http) -> None:
    """An answer of exactly the limit is kept, one byte more leaves a tombstone."""
    assert http.post("/echo", body=b"").body == b"POST /echo? "
    assert http.post("/echo", body=b"").code == "response_not_replayable"
    assert http.post("/status/200", key="k2").body == b"run 1"
    assert http.post("/status/200", key="k2").replayed


@scenario()
def a_path_may_hold_anything(http: Http) -> None:
    """CAN-07: path, query and body are framed, so nothing slides from one into the next."""
    http.post("/echo", body=b"y|z", content_type="text/plain")
    assert http.post("/echo%7Cy", body=b"z", content_type="text/plain").status == 422
    assert http.post("/echo/%C3%A9%FF", key="k2").status == 200
    assert http.post("/echo/%C3%A9%FF", key="k2").replayed


@scenario()
def a_large_upload_passes_through_a_file(http: Http) -> None:
    """HTT-01: two mebibytes are compared, and still all there for the application, byte by byte."""
    body = b"0123456789abcdef" * (2 << 16) + b"end"
    more = {"content_type": "application/octet-stream"}
    first = http.post("/size", body=body, **more)
    assert first.body == b"2097155 end"
    assert http.post("/size", body=body, **more).replayed
    assert http.post("/size", body=body[:-1] + b"D", **more).code == "idempotency_key_reuse"
