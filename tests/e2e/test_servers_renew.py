"""Leases are renewed in every kind of worker: forked after loading, with threads, with greenlets.

The test waits for what it can see, the lease's end moving in the database, and for no clock.
"""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idemcore.identity import SINGLE_TENANT, identify
from idemcore.record import Record
from idemcore.stores.sql import SQLAlchemyStore
from tests.conditions import PATIENCE, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="gunicorn needs POSIX")


class Server:
    """Gunicorn on a free port, serving slow_app."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        command = [sys.executable, "-m", "gunicorn", "-b", "127.0.0.1:0", *options, "slow_app:app"]
        self._log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            command,
            cwd=Path(__file__).parent,
            env={"SLOW_APP_FOLDER": str(folder), "PATH": ""},
            stderr=self._log,
        )
        self.port = self._wait_for_port(folder / "log")

    def _wait_for_port(self, log: Path) -> int:
        listening = re.compile(r"Listening at: http://127\.0\.0\.1:(\d+)")
        until(lambda: listening.search(log.read_text()) or self.process.poll() is not None)
        found = listening.search(log.read_text())
        assert found is not None, f"gunicorn did not start: {log.read_text()}"
        return int(found[1])

    def post(self) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("POST", "/slow", b"{}", {"Idempotency-Key": "k", "Content-Type": "application/json"})
        answer = connection.getresponse()
        received = (answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return received

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE)
        self._log.close()


WORKERS = {
    "preloaded and forked": ["-k", "sync", "-w", "2", "--preload"],
    "gthread": ["-k", "gthread", "--threads", "4"],
    "gevent": ["-k", "gevent"],
}


@pytest.fixture(params=WORKERS)
def server(request: pytest.FixtureRequest, tmp_path: Path, store: SQLAlchemyStore) -> Iterator[Server]:
    server = Server(tmp_path, WORKERS[request.param])
    yield server
    (tmp_path / "go").touch()  # no view may be left waiting, whatever the test came to
    server.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLAlchemyStore]:
    store = SQLAlchemyStore(f"sqlite:///{tmp_path / 'records.db'}")
    store.create_schema()  # a server listens before its workers have loaded the app
    yield store
    store.close()


def test_a_handler_of_many_leases_keeps_its_claim(
    server: Server, store: SQLAlchemyStore, tmp_path: Path
) -> None:
    """LEA-04: the lease moves while the view runs, a second request gets 409, and the view runs once."""
    answers: list[tuple[int, dict[str, str], bytes]] = []
    first = threading.Thread(target=lambda: answers.append(server.post()))
    first.start()
    for _ in range(2):
        assert until(lease_moves(store))
        status, headers, _ = server.post()
        assert (status, "Retry-After" in headers) == (409, True)
    (tmp_path / "go").touch()
    first.join(timeout=PATIENCE)
    status, headers, body = server.post()
    assert answers[0][0::2] == (201, b"done")
    assert (status, body, headers["Idempotent-Replayed"]) == (201, b"done", "true")
    assert (tmp_path / "runs").read_text() == "run\n"


def lease_moves(store: SQLAlchemyStore) -> Callable[[], bool]:
    """Tells whether it has, since it was first asked."""
    identity = identify(SINGLE_TENANT, "http", "k")
    ends: list[float] = []

    def has_moved() -> bool:
        record = store.get(identity)
        if isinstance(record, Record):
            ends.append(time.time() + record.lease_left)
        # Half a second is far more than two readings of one lease can differ by.
        return bool(ends) and ends[-1] > ends[0] + 0.5

    return has_moved
