"""The application that every scenario speaks to: one answer a path, however it is served.

It counts its runs by case (the header X-Case) and path, so many scenarios may share one server, and tells
them on GET /control/runs. It knows nothing of idempotency.
"""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

LIMIT = 1 << 20
"""Bytes of an answer that are kept by default."""
PATIENCE = 60.0
"""Seconds after which a test that hangs is given up."""


@dataclass
class Seen:
    """A request as the application sees it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def case(self) -> str:
        return self.headers.get("X-Case", "")


@dataclass
class Reply:
    """An answer as the application makes it."""

    body: bytes | Iterable[bytes] = b""
    status: str = "200 OK"
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("Content-Type", "text/plain")])


class Broken(Exception):
    """Raised by the application."""


class Shop:
    """Answers by path."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.runs: Counter[tuple[str, str]] = Counter()
        self._gates: dict[str, tuple[threading.Event, threading.Event]] = {}

    def answer(self, seen: Seen) -> Reply:
        if seen.path.startswith("/control/"):
            return self._control(seen)
        with self._lock:
            self.runs[seen.case, seen.path] += 1
            run = self.runs[seen.case, seen.path]
        name = seen.path.strip("/").partition("/")[0].replace("-", "_")
        handler: Callable[[Seen, int], Reply] = getattr(self, f"_{name}", self._echo)
        return handler(seen, run)

    def _control(self, seen: Seen) -> Reply:
        entered, opened = self._gate(seen.case)
        what = seen.path.removeprefix("/control/")
        if what == "open":
            opened.set()
        elif what == "entered" and not entered.wait(PATIENCE):
            raise Broken("nobody came")
        with self._lock:
            total = sum(count for (case, _), count in self.runs.items() if case == seen.case)
        return Reply(b"%d" % total)

    def _gate(self, case: str) -> tuple[threading.Event, threading.Event]:
        with self._lock:
            return self._gates.setdefault(case, (threading.Event(), threading.Event()))

    def _echo(self, seen: Seen, run: int) -> Reply:
        return Reply(
            b"%s %s?%s %s" % (seen.method.encode(), seen.path.encode(), seen.query.encode(), seen.body)
        )

    def _size(self, seen: Seen, run: int) -> Reply:
        return Reply(b"%d %b" % (len(seen.body), seen.body[-3:]))

    def _pay(self, seen: Seen, run: int) -> Reply:
        headers = [
            ("Content-Type", "application/json"),
            ("Location", f"/payments/{run}"),
            ("ETag", f'"{run}"'),
            ("Link", "</a>; rel=first"),
            ("Set-Cookie", "session=secret; Path=/"),
            ("Link", "</b>; rel=second"),
            ("Set-Cookie", "other=secret; Path=/"),
            ("X-Request-Id", f"request-{run}"),
            ("X-RateLimit-Remaining", "7"),
            ("Access-Control-Allow-Origin", "https://shop.example"),
        ]
        return Reply(b'{"run":%d, "amount":1.50, "got":%d}' % (run, len(seen.body)), "201 Created", headers)

    def _status(self, seen: Seen, run: int) -> Reply:
        code = seen.path.rpartition("/")[2]
        headers = [("Content-Type", "text/plain"), ("Location", f"/{run}"), ("WWW-Authenticate", "Bearer")]
        return Reply(b"run %d" % run, f"{code} Whatever", headers)

    def _first(self, seen: Seen, run: int) -> Reply:
        """/first/<code>: that code at first, 201 ever after."""
        code = seen.path.rpartition("/")[2] if run == 1 else "201"
        return Reply(b"run %d" % run, f"{code} Whatever")

    def _raise_once(self, seen: Seen, run: int) -> Reply:
        if run == 1:
            raise Broken("the database went away")
        return Reply(b"run %d" % run, "201 Created")

    def _empty(self, seen: Seen, run: int) -> Reply:
        return Reply(b"", "204 No Content", [("X-Run", str(run))])

    def _bytes(self, seen: Seen, run: int) -> Reply:
        return Reply(
            bytes(range(256)) * 8 + b"%d" % run, headers=[("Content-Type", "application/octet-stream")]
        )

    def _text(self, seen: Seen, run: int) -> Reply:
        body = f'{{"b":1, "a":1.50,  "é":{run}}}'
        return Reply(body.encode(), headers=[("Content-Type", "text/csv; charset=utf-8")])

    def _stream(self, seen: Seen, run: int) -> Reply:
        return Reply(_chunks(b"run ", b"%d" % run, b", ", b"", b"done"))

    def _stream_breaks(self, seen: Seen, run: int) -> Reply:
        return Reply(_breaking())

    def _big(self, seen: Seen, run: int) -> Reply:
        return Reply(b"%d" % (run % 10) * (LIMIT + 1))

    def _big_stream(self, seen: Seen, run: int) -> Reply:
        return Reply(_chunks(*[b"%d" % (run % 10) * (LIMIT // 4)] * 5))

    def _gzip(self, seen: Seen, run: int) -> Reply:
        headers = [
            ("Content-Type", "text/plain"),
            ("Content-Encoding", "gzip"),
            ("Vary", "Accept-Encoding"),
            ("ETag", '"packed"'),
        ]
        return Reply(gzip.compress(b"run %d " % run * 100, mtime=0), headers=headers)

    def _slow(self, seen: Seen, run: int) -> Reply:
        entered, opened = self._gate(seen.case)
        entered.set()
        if not opened.wait(PATIENCE):
            raise Broken("nobody opened the gate")
        return Reply(b"run %d" % run, "201 Created")


def _chunks(*chunks: bytes) -> Iterator[bytes]:
    yield from chunks


def _breaking() -> Iterator[bytes]:
    yield b"half of"
    raise Broken("the rest is gone")
