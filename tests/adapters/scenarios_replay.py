"""What the second request gets: the first one's answer, and only what belongs to it."""

from __future__ import annotations

import gzip

from tests.adapters.http import Http
from tests.adapters.scenario import scenario
from tests.adapters.shop import LIMIT


@scenario()
def retry_gets_the_first_answer(http: Http) -> None:
    """REP-01, REP-03, REP-07: same status, body and headers in order, marked as a replay; one run."""
    first, second = http.post(), http.post()
    assert (first.status, second.status) == (201, 201)
    assert second.body == first.body
    assert not first.replayed
    assert second.replayed
    for name in ("Location", "ETag", "Content-Type", "Link"):
        assert second.all(name) == first.all(name) != []
    assert "rel=second" in second.all("Link")[-1]
    assert http.runs == 1


@scenario()
def bodies_come_back_byte_for_byte(http: Http) -> None:
    """REP-06: nothing is parsed and printed again, whatever the type."""
    for target in ("/text", "/bytes", "/pay"):
        first, second = http.post(target, key=target), http.post(target, key=target)
        assert second.replayed
        assert second.body == first.body
        assert second["Content-Type"] == first["Content-Type"]
        assert int(second["Content-Length"] or -1) == len(second.body)


@scenario()
def cookies_and_moments_are_not_replayed(http: Http) -> None:
    """REP-02: cookies, challenges, request ids, quotas and the CORS answer belong to one exchange."""
    first, second = http.post(), http.post()
    assert len(first.all("Set-Cookie")) == 2
    for name in ("Set-Cookie", "X-Request-Id", "X-RateLimit-Remaining", "Access-Control-Allow-Origin"):
        assert first[name] is not None
        assert second[name] is None
    kept = http.post("/status/202", key="k2"), http.post("/status/202", key="k2")
    assert kept[0]["WWW-Authenticate"] == "Bearer"
    assert kept[1]["WWW-Authenticate"] is None


@scenario()
def every_kept_status_comes_back_as_it_was(http: Http) -> None:
    """REP-03: a replay is never turned into 200."""
    for code in (200, 201, 202, 203, 206, 301, 302, 303, 307):
        first, second = (http.post(f"/status/{code}", key=f"k{code}") for _ in range(2))
        assert (first.status, second.status) == (code, code)
        assert second.replayed
        assert second["Location"] == first["Location"]
        assert second.body == first.body
    assert http.runs == 9


@scenario()
def an_empty_answer_is_an_answer(http: Http) -> None:
    """OUT: 204 runs once; its retry gets 204 and no body."""
    first, second = http.post("/empty"), http.post("/empty")
    assert (first.status, second.status) == (204, 204)
    assert second.replayed
    assert second.body == b""
    assert second["X-Run"] == "1"
    assert http.runs == 1


@scenario()
def a_stream_reaches_both(http: Http) -> None:
    """REP-05: the first client gets the stream, its retry the same bytes at once."""
    first, second = http.post("/stream"), http.post("/stream")
    assert first.body == b"run 1, done"
    assert second.replayed
    assert second.body == first.body
    assert http.runs == 1


@scenario()
def a_large_answer_is_sent_whole_and_never_run_again(http: Http) -> None:
    """REP: what is too large to keep reaches the first client; its retry is told, and runs nothing."""
    for target in ("/big", "/big-stream"):
        first, second = http.post(target, key=target), http.post(target, key=target)
        assert first.status == 200
        assert len(first.body) > LIMIT
        assert second.status == 422
        assert second.code == "response_not_replayable"
        assert second.problem["retry"] == "never"
    assert http.runs == 2


@scenario()
def a_stream_that_breaks_is_not_run_again(http: Http) -> None:
    """REP-05: half an answer is no answer, and running again is no way to get the other half."""
    first, second = http.post("/stream-breaks"), http.post("/stream-breaks")
    assert first.body == b"half of"
    assert second.code == "response_not_replayable"
    assert http.runs == 1


@scenario()
def coding_length_and_bytes_agree(http: Http) -> None:
    """REP-04: who asks for gzip gets the kept bytes; who does not gets them unpacked."""
    plain = b"run 1 " * 100
    asks = [("Accept-Encoding", "gzip, br")]
    first, packed = http.post("/gzip", headers=asks), http.post("/gzip", headers=asks)
    assert packed.replayed
    assert packed.body == first.body
    assert packed["Content-Encoding"] == "gzip"
    assert packed["ETag"] == '"packed"'
    assert gzip.decompress(packed.body) == plain
    for headers in ([], [("Accept-Encoding", "gzip;q=0, identity")]):
        unpacked = http.post("/gzip", headers=headers)
        assert unpacked.replayed
        assert unpacked["Content-Encoding"] is None
        assert unpacked["ETag"] == 'W/"packed"'
        assert unpacked["Vary"] == "Accept-Encoding"
        assert unpacked.body == plain
        assert int(unpacked["Content-Length"] or -1) == len(plain)
    assert http.runs == 1


@scenario()
def a_client_that_hangs_up_finds_its_answer(http: Http) -> None:
    """The work is done although nobody waited: the retry gets its answer, streams included."""
    for target in ("/pay", "/stream"):
        http.post(target, key=target, leave=True)
        again = http.post(target, key=target)
        while not again.replayed:  # over a network the retry may even come first
            assert again.code in ("", "request_in_progress")
            again = http.post(target, key=target)
        assert again.body.startswith((b"run 1, done", b'{"run":1'))
    assert http.runs == 2
