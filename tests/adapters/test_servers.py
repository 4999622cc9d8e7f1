"""Over sockets: the scenarios that need no options, and that nothing is ever read past a body."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from idemcore import Engine
from tests.adapters import (
    scenarios_body,
    scenarios_key,
    scenarios_options,
    scenarios_outcome,
    scenarios_replay,
)
from tests.adapters.http import Http, OverSocket
from tests.adapters.scenario import SCENARIOS
from tests.adapters.servers import SERVERS
from tests.adapters.shop import PATIENCE, Shop
from tests.adapters.stations import STATIONS
from tests.conditions import until

assert scenarios_body, scenarios_key
assert scenarios_outcome, scenarios_options
assert scenarios_replay

ONE_AT_A_TIME = ("wsgiref", "gunicorn-sync")
CLOSING = ("werkzeug", "wsgiref", "gunicorn-sync")
"""They end the connection after each answer."""

pytestmark = pytest.mark.slow


class Served:
    """A station behind a server."""

    def __init__(self, server: str, port: int) -> None:
        self.server = server
        self.port = port
        self.transport = OverSocket(port)


PAIRS = [(server, station) for server in SERVERS for station in ("wsgi", "flask-route")]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Each server with each of two stations, on SQLite."""
    server, station = request.param
    folder: Path = tmp_path_factory.mktemp("served")
    with Engine(f"sqlite:///{folder / 'idemcore.db'}", observers=()) as idem:
        idem.create_schema()
        with SERVERS[server](station, STATIONS[station](Shop(), idem)) as port:
            yield Served(server, port)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "name", [scenario.name for scenario in SCENARIOS if not scenario.options and not scenario.threads]
)
def test_scenario_over_a_socket(name: str, served: Served) -> None:
    """The scenario's own docstring says what holds."""
    if served.server == "wsgiref" and name == "chunked_bodies_differ_by_their_content":
        pytest.skip("cannot read chunked bodies, and closes on a client that is still sending; see below")
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    scenario.play(Http(served.transport))


@pytest.mark.parametrize(
    "name", [scenario.name for scenario in SCENARIOS if scenario.threads and not scenario.options]
)
def test_scenario_with_threads_over_a_socket(name: str, served: Served) -> None:
    """The scenario's own docstring says what holds."""
    if served.server in ONE_AT_A_TIME:
        pytest.skip("serves one request at a time")
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    scenario.play(Http(served.transport))


def request_of(body: bytes, *headers: bytes, key: bytes = b"k", target: bytes = b"/echo") -> bytes:
    lines = [b"POST %s HTTP/1.1" % target, b"Host: shop.example", b"X-Case: raw", b"X-User: raw", *headers]
    lines += [b"Content-Type: text/plain", b"Idempotency-Key: " + key]
    return b"\r\n".join([*lines, b"", body])


def speak(port: int, *pieces: bytes, half_close: bool = True) -> bytes:
    """Sends the pieces over one connection and returns everything that comes back until it ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        for piece in pieces:
            connection.sendall(piece)
        received = bytearray()
        try:
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(1 << 16):
                received += chunk
        except OSError:  # a server that has closed with something unread
            pass
        return bytes(received)


def test_nothing_is_read_past_the_body(served: Served) -> None:
    """HTT-02: a second request on the same connection, sent at once, is still there to be served."""
    first = request_of(b"first", b"Content-Length: 5", key=b"p1")
    second = request_of(b"second", b"Content-Length: 6", b"Connection: close", key=b"p2")
    received = speak(served.port, first + second, half_close=False)
    assert b"POST /echo? first" in received
    if served.server in CLOSING:
        assert received.count(b"HTTP/1") == 1
    else:
        assert b"POST /echo? second" in received
        assert received.count(b"HTTP/1.1 200") == 2


def test_chunked_bodies_end_where_they_end(served: Served) -> None:
    """HTT-02: a chunked request, then another on the same connection; or it is refused, never guessed."""
    chunked = request_of(b"5\r\nfirst\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", key=b"c1")
    second = request_of(b"second", b"Content-Length: 6", b"Connection: close", key=b"c2")
    received = speak(served.port, chunked + second, half_close=False)
    if served.server == "wsgiref":
        assert b" 411 " in received
        assert b"request_length_required" in received
    else:
        assert b"POST /echo? first" in received
    if served.server not in CLOSING:
        assert b"POST /echo? second" in received


def test_a_malformed_chunk_is_the_clients_fault(served: Served) -> None:
    """HTT-02: a 4xx, by the server or by us, or the end of the connection; never a 500, and nothing runs."""
    headers = (b"Transfer-Encoding: chunked", b"Connection: close")
    got = speak(served.port, request_of(b"zz\r\nfirst\r\n0\r\n\r\n", *headers, key=b"malformed"))
    assert got == b"" or b" 4" in got.splitlines()[0]
    assert b"POST /echo" not in got


def test_a_body_that_breaks_off_claims_nothing(served: Served) -> None:
    """A client that announces 100 bytes and sends 10 runs nothing, and its key is free."""
    speak(served.port, request_of(b"0123456789", b"Content-Length: 100", key=b"short"))
    whole = b"0123456789" * 10
    got = speak(served.port, request_of(whole, b"Content-Length: 100", b"Connection: close", key=b"short"))
    assert b" 200 " in got.splitlines()[0]
    assert b"Idempotent-Replayed" not in got


@pytest.mark.parametrize("length", [b"abc", b"-1", b"+5", b"5, 5", b"9" * 5000, b"99999999999"])
def test_lying_lengths_never_get_past(length: bytes, served: Served) -> None:
    """A Content-Length that is no number or far too large is refused, by the server or by us, with a 4xx."""
    got = speak(
        served.port, request_of(b"12345", b"Content-Length: " + length, b"Connection: close", key=b"lie")
    )
    assert got == b"" or b" 4" in got.splitlines()[0] or served.server == "wsgiref"
    assert b"POST /echo" not in got


def test_a_large_refused_body_does_not_spoil_the_connection(served: Served) -> None:
    """413 before the body is read, or after: the client gets an answer, or the connection ends."""
    size = 11 << 20
    got = speak(served.port, request_of(b"", b"Content-Length: %d" % size, b"Connection: close"), b"x" * 1000)
    assert got == b"" or b" 4" in got.splitlines()[0]


def test_a_client_that_hangs_up_at_once_finds_its_answer(served: Served) -> None:
    """The connection is reset before the answer; the retry gets it, and nothing ran twice."""
    http = Http(served.transport)
    http.post("/pay", leave=True)
    assert until(lambda: http.post("/pay").replayed)
    assert http.runs == 1
