"""Options of a route, each explicit: what names an operation, what is kept, how refusals look."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from idemcore import Canonicalizer
from idemcore.http import HTTPAnswer, Problem, Request
from tests.adapters.http import Http
from tests.adapters.scenario import scenario


@scenario(identity="key+content")
def the_same_key_with_other_content_is_another_operation(http: Http) -> None:
    """KEY-05: by a choice made beforehand, and each still runs once."""
    first, second = http.post(body=b'{"amount":1}'), http.post(body=b'{"amount":2}')
    assert (first.status, second.status) == (201, 201)
    assert not second.replayed
    assert http.post(body=b'{"amount":1.0}').body == first.body
    assert http.post(body=b'{"amount":2.0}').body == second.body
    assert http.runs == 2


@scenario(operation="route")
def the_same_key_on_another_route_is_another_operation(http: Http) -> None:
    """KEY-02: by choice a key is unique for a method and a route only."""
    assert http.post("/pay").status == 201
    assert http.send("PATCH", "/pay").status == 201
    assert not http.send("PATCH", "/pay", key="k2").replayed
    assert http.post("/pay").replayed
    assert http.post("/pay", body=b"{}").code == "idempotency_key_reuse"


@scenario(exclude_query=["trace", "utm/x"], exclude=["csrf"])
def parameters_and_fields_that_do_not_count(http: Http) -> None:
    """CAN-06, KEY-03: what is named may change, in queries and forms too; everything else counts."""
    form = "application/x-www-form-urlencoded"
    http.post("/pay?a=1&trace=1", body=b"amount=1&csrf=x", content_type=form)
    assert http.post("/pay?utm%2Fx=7&a=1&trace=2", body=b"csrf=y&amount=1", content_type=form).replayed
    assert http.post("/pay?a=1", body=b"amount=1", content_type=form).replayed
    assert http.post("/pay?a=2", body=b"amount=1", content_type=form).code == "idempotency_key_reuse"
    assert http.post("/pay?a=1&csrf=1", body=b"amount=1", content_type=form).code == "idempotency_key_reuse"


@scenario(key="/event/id", required=True)
def an_event_id_is_the_key(http: Http) -> None:
    """A webhook's key stands in its body; a delivery without one is refused, whatever header it has."""
    first = http.post(key=None, body=b'{"event":{"id":"evt_1"},"n":1}')
    assert first.status == 201
    assert http.post(key="ignored", body=b'{"n":1.0,"event":{"id":"evt_1"}}').replayed
    assert http.post(key=None, body=b'{"event":{"id":"evt_1"},"n":2}').code == "idempotency_key_reuse"
    assert http.post(key=None, body=b'{"event":{"id":7}}').status == 201
    assert http.post(key=None, body=b'{"event":{"id":7}}').replayed
    for event in (b"{}", b"[]", b"null", b'{"id":null}', b'{"id":true}', b'{"id":1.5}', b'{"id":""}'):
        missing = http.post(key="k", body=b'{"event":%b}' % event)
        assert missing.code == "idempotency_key_missing"
    for body in (b"{", b"", b"[1]", b"[" * 100_000):
        assert http.post(key="k", body=body).code == "idempotency_key_missing"
    assert http.post(key=None, body=b'{"event":{"id":"%b"}}' % (b"x" * 256)).code == "idempotency_key_invalid"
    assert http.post(key=None, body=b'{"event":{"id":"a\\u0000b"}}').code == "idempotency_key_invalid"
    assert http.runs == 2


def _delivery(request: Request) -> str | None:
    body = request.json()
    return f"{body['topic']}-{body['id']}" if "id" in body else None


@scenario(key=_delivery)
def a_key_of_several_parts(http: Http) -> None:
    """A callable makes the key; where it finds none a request goes straight through, its body untouched."""
    body = b'{"topic":"orders","id":1}'
    assert http.post("/echo", key=None, body=body).body == b"POST /echo? " + body
    assert http.post("/echo", key=None, body=body).replayed
    without = b'{"topic":"orders"}'
    got = [http.post("/echo", key=None, body=without) for _ in range(2)]
    assert [answer.body for answer in got] == [b"POST /echo? " + without] * 2
    assert not got[1].replayed


@scenario(keep_body=False)
def what_must_not_be_stored_is_not_run_again_either(http: Http) -> None:
    """SEC-01: the first client gets its token; the retry is told to look the result up."""
    first, second = http.post(), http.post()
    assert first.status == 201
    assert second.code == "response_not_replayable"
    assert http.post("/stream", key="k2").body == b"run 1, done"
    assert http.post("/stream", key="k2").code == "response_not_replayable"
    assert http.post("/first/402", key="k3").status == 402
    assert http.post("/first/402", key="k3").status == 201
    assert http.runs == 4


def _masked(answer: HTTPAnswer) -> HTTPAnswer:
    return answer._replace(body=answer.body.replace(b'"amount":1.50', b'"amount":"***"'))


@scenario(redact=_masked)
def secrets_are_redacted_before_they_are_stored(http: Http) -> None:
    """SEC-01: the first client sees the secret, the record and its replays do not; lengths agree."""
    first, second = http.post(), http.post()
    assert b'"amount":1.50' in first.body
    assert second.replayed
    assert b'"amount":"***"' in second.body
    assert second["Location"] == first["Location"]
    assert int(second["Content-Length"] or -1) == len(second.body)


@scenario(redact=lambda answer: 1 / 0)
def what_could_not_be_redacted_is_not_stored(http: Http) -> None:
    """SEC-01: a redaction that raises stores nothing, and nothing runs again."""
    assert http.post().status == 201
    assert http.post().code == "response_not_replayable"


@scenario(redact=lambda answer: answer._replace(body=answer.body * 100), max_response_bytes=2000)
def what_a_redaction_made_too_large_is_not_stored(http: Http) -> None:
    """REP-06: the limit counts for what would be stored, and nothing runs again."""
    assert http.post().status == 201
    assert http.post().code == "response_not_replayable"
    assert http.runs == 1


@scenario(redact=lambda answer: answer.body)
def what_was_redacted_wrongly_is_not_stored(http: Http) -> None:
    """SEC-01: nor does a redaction that returns something else have it run again."""
    assert http.post().status == 201
    assert http.post().code == "response_not_replayable"


_WRONG: list[Callable[[HTTPAnswer], Any]] = [
    lambda answer: answer._replace(headers={"Content-Type": "text/plain"}),
    lambda answer: answer._replace(headers=None),
    lambda answer: answer._replace(body=None),
    lambda answer: answer._replace(body="text"),
    lambda answer: answer._replace(status_text="Created"),
]


@scenario(redact=lambda answer: _WRONG[int(answer.body[-1:])](answer))
def what_was_redacted_into_a_wrong_shape_is_not_stored(http: Http) -> None:
    """SEC-01: an answer with a part that is none is no answer either; its request does not run again."""
    for number in range(len(_WRONG)):
        body = b"%d" % number
        assert http.post("/echo", key=f"k{number}", body=body).body == b"POST /echo? " + body
        assert http.post("/echo", key=f"k{number}", body=body).code == "response_not_replayable"
    assert http.runs == len(_WRONG)


@scenario(keep_headers=["X-Request-Id"], drop_headers=["etag", "link"])
def a_header_filter_of_ones_own(http: Http) -> None:
    """REP-01, REP-02: beside the usual rule."""
    first, second = http.post(), http.post()
    assert second["X-Request-Id"] == first["X-Request-Id"] == "request-1"
    assert (second["ETag"], second["Link"]) == (None, None)
    assert second["Location"] == first["Location"]
    assert second["Set-Cookie"] is None


@scenario(replayed_header="X-Cache-Hit")
def a_marker_of_ones_own(http: Http) -> None:
    """REP-07: the name of the header that marks a replay may be chosen."""
    first, second = http.post(), http.post()
    assert (first["X-Cache-Hit"], second["X-Cache-Hit"]) == (None, "true")
    assert second["Idempotent-Replayed"] is None
    assert second.body == first.body


@scenario(
    required=True,
    statuses={"idempotency_key_missing": 428, "idempotency_key_reuse": 409},
    problem_types="https://shop.example/problems/",
)
def statuses_and_types_of_ones_own(http: Http) -> None:
    """HTT-07: the code and what to do stay the same."""
    missing = http.post(key=None)
    assert (missing.status, missing.code) == (428, "idempotency_key_missing")
    assert missing.problem["type"] == "https://shop.example/problems/idempotency_key_missing"
    http.post()
    assert (http.post(body=b"{}").status, http.post(body=b"{}").code) == (409, "idempotency_key_reuse")


def _house_style(problem: Problem) -> tuple[str, bytes]:
    return "application/vnd.shop+json", b'{"error":{"code":"%b","retry":"%b"}}' % (
        problem.code.encode(),
        problem.retry.encode(),
    )


@scenario(render=_house_style)
def refusals_in_the_applications_style(http: Http) -> None:
    """HTT-07: body and type are the application's, status and caching stay."""
    http.post()
    got = http.post(body=b"{}")
    assert got.status == 422
    assert got["Content-Type"] == "application/vnd.shop+json"
    assert got["Cache-Control"] == "no-store"
    assert got.body == b'{"error":{"code":"idempotency_key_reuse","retry":"new_key"}}'


@scenario(wait=timedelta(seconds=15), threads=True)
def a_retry_may_wait_for_the_first(http: Http) -> None:
    """RAC-01: by choice the retry gets the answer as soon as it is there, instead of 409."""
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(http.post, "/slow")
        http.control("entered")
        waiting = pool.submit(http.post, "/slow")
        http.control("open")
        first, second = running.result(), waiting.result()
    assert first.status == 201
    assert second.replayed
    assert second.body == first.body
    assert http.runs == 1


@scenario()
def uploads_are_compared_part_by_part(http: Http) -> None:
    """HTT-05: a new boundary is no new request, changed bytes are."""

    def upload(boundary: str, content: bytes) -> dict[str, object]:
        head = b'Content-Disposition: form-data; name="scan"; filename="a.bin"\r\nContent-Type: image/png'
        body = b"--%b\r\n%b\r\n\r\n%b\r\n--%b--\r\n" % (boundary.encode(), head, content, boundary.encode())
        return {"body": body, "content_type": f"multipart/form-data; boundary={boundary}"}

    http.post(**upload("one", b"\x89PNG"))
    assert http.post(**upload("two", b"\x89PNG")).replayed
    assert http.post(**upload("two", b"\x89PNG!")).code == "idempotency_key_reuse"


@scenario()
def packed_bodies_are_compared_unpacked(http: Http) -> None:
    """Gzip's header holds the time of packing, so a retry does not repeat its bytes; the handler gets them."""
    import gzip

    packed = [gzip.compress(b'{"amount":10}', mtime=moment) for moment in (1, 2)]
    coding = [("Content-Encoding", "gzip")]
    assert http.post("/echo", body=packed[0], headers=coding).body == b"POST /echo? " + packed[0]
    assert http.post("/echo", body=packed[1], headers=coding).replayed
    other = gzip.compress(b'{"amount":11}')
    assert http.post("/echo", body=other, headers=coding).code == "idempotency_key_reuse"


@scenario(canonicalizer=Canonicalizer(exclude=["/pin"], key=b"a key of ours, only in memory", key_id="2025"))
def low_entropy_secrets_are_no_oracle(http: Http) -> None:
    """SEC-03: a PIN may be left out, and digests may be keyed; what else is sent still counts."""
    http.post(body=b'{"amount":1,"pin":"1234"}')
    assert http.post(body=b'{"pin":"9999","amount":1.0}').replayed
    assert http.post(body=b'{"pin":"1234","amount":2}').code == "idempotency_key_reuse"


@scenario(key="/id")
def a_key_is_found_in_a_packed_body(http: Http) -> None:
    """A webhook that is sent with gzip has its event id inside; packed anew it is the same event."""
    packing = [("Content-Encoding", "gzip")]
    for mtime in (1, 2):
        body = gzip.compress(b'{"id":"evt_1","sum":5}', mtime=mtime)
        got = http.post("/echo", key=None, body=body, headers=packing)
        assert got.status == 200
        assert got.replayed is (mtime == 2)
    assert http.runs == 1


@scenario(key="/id", required=True, max_request_bytes=100)
def a_key_behind_a_packing_that_cannot_be_undone_is_missing(http: Http) -> None:
    """What is no gzip, another coding, or too large when unpacked: refused in words, and nothing runs."""
    event = b'{"id":"evt_1"}'
    bomb = gzip.compress(event + b" " * 10_000)
    for coding, body in (("gzip", b"no gzip"), ("br", b"\x0b\x06\x80"), ("gzip", bomb)):
        got = http.post("/echo", key=None, body=body, headers=[("Content-Encoding", coding)])
        assert got.code == "idempotency_key_missing"
        assert "in its body" in got.problem["detail"]
    assert http.runs == 0
