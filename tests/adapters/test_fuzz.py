"""Anything that a client may send: never a 500 of ours, never a second run, never another's answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from idemcore import Engine
from idemcore.http.problem import CODES
from tests.adapters.http import Got, Http, environ_of
from tests.adapters.shop import Shop
from tests.adapters.stations import STATIONS

LATIN = st.text(st.characters(max_codepoint=0xFF, exclude_characters="\r\n\0"), max_size=40)
KEYS = st.one_of(
    LATIN, LATIN.map(lambda text: f'"{text}"'), st.sampled_from(["k", '"k"', "k,k", '"a";b', "\\"])
)
TYPES = st.one_of(
    LATIN,
    st.sampled_from(
        [
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=b",
            'multipart/form-data; boundary="',
            "multipart/mixed",
            "text/plain; charset=\xff",
        ]
    ),
)
BODIES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"{}", b'{"a":1e400}', b"[" * 3000, b"&&==%%%", b"--b\r\n\r\n\r\n--b--", b"\xff\xfe{\x00}\x00", b"NaN"]
    ),
    st.lists(st.binary(max_size=20), max_size=3),
)


class Unchecked:
    """Hands a request over as a careless server would, and lets no exception pass unseen."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def exchange(self, method: str, target: str, headers: Any, body: Any, leave: bool) -> Got:
        started: list[Any] = []
        environ = environ_of(method, target, headers, body)
        iterable = self.app(environ, lambda status, fields, exc_info=None: started.append((status, fields)))
        try:
            content = b"".join(iterable)
        finally:
            getattr(iterable, "close", lambda: None)()
        return Got(int(started[-1][0][:3]), tuple(started[-1][1]), content)


@pytest.mark.parametrize("station", ["wsgi", "flask-route", "flask-app"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    key=KEYS,
    content_type=TYPES,
    body=BODIES,
    query=LATIN,
    encoding=st.one_of(st.none(), st.sampled_from(["gzip", "br", ""]), LATIN),
    length=st.one_of(st.none(), LATIN, st.integers(-5, 99).map(str)),
    key_in_body=st.booleans(),
)
@example(key="k", content_type="", body=b"x", query="", encoding=None, length="\xb2", key_in_body=False)
@example(key="k", content_type="", body=b"", query="&" * 20_000, encoding=None, length=None, key_in_body=True)
def test_whatever_comes_is_answered(
    station: str,
    key: str,
    content_type: str,
    body: Any,
    query: str,
    encoding: str | None,
    length: str | None,
    key_in_body: bool,
) -> None:
    """KEY-07, HTT-07: an answer of the application's, its replay, or a refusal with a code of the contract."""
    shop = Shop()
    options = {"key": "/a"} if key_in_body else {}
    http = Http(Unchecked(STATIONS[station](shop, Engine("memory://", observers=()), **options)))
    headers = [("Accept-Encoding", "gzip")]
    if encoding is not None:
        headers.append(("Content-Encoding", encoding))
    if length is not None:
        headers.append(("Content-Length", length))
    more: dict[str, Any] = {"key": key, "content_type": content_type, "body": body, "headers": headers}
    first, second = (http.post("/echo?" + query, **more) for _ in range(2))
    for got in (first, second):
        assert got.status == 200 or got.code in CODES
    assert first.status == second.status
    if first.status == 200 and not key_in_body:
        assert second.replayed
        assert second.body == first.body
        assert http.runs == 1


@pytest.mark.parametrize("station", STATIONS)
@pytest.mark.parametrize("method", ["post", "Post", "POST"])
def test_the_case_of_a_method_opens_no_way_past(station: str, method: str) -> None:
    """SEC: frameworks write methods in upper case, so what a client writes otherwise is guarded as well."""
    shop = Shop()
    http = Http(Unchecked(STATIONS[station](shop, Engine("memory://", observers=()), required=True)))
    assert http.send(method, "/pay", key=None).code == "idempotency_key_missing"
    assert http.runs == 0
    assert http.send("POST", "/pay").status == 201
    assert http.send(method, "/pay").replayed
