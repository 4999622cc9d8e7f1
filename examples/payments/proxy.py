"""A loopback proxy that does on request what networks do by themselves: drops, delays, repeats.

A request says in its `Proxy-Fault` header what is to happen to it; the header goes no further.

- `drop-answer`: the request is carried out, its answer never arrives
- `delay=SECONDS`: the request reaches the app that much later, even if its sender has gone
- `repeat`: the app gets the request twice, one after the other; the second answer is passed on
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from processes import BACKLOG, LOOPBACK

PATIENCE = 30.0


class Forwarding(BaseHTTPRequestHandler):
    """One request in, one or two out, at most one answer back."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    upstream: int

    def do_POST(self) -> None:  # the name is http.server's
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault, _, amount = self.headers.get("Proxy-Fault", "").partition("=")
        if fault == "delay":
            time.sleep(float(amount))
        if fault == "repeat":
            self._forward(body)
        answer, content = self._forward(body)
        if fault == "drop-answer":
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815  # likewise

    def _forward(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        upstream = http.client.HTTPConnection(LOOPBACK, self.upstream, timeout=PATIENCE)
        with contextlib.closing(upstream):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("proxy-fault", "connection"):
                    upstream.putheader(name, value)
            upstream.putheader("Connection", "close")
            upstream.endheaders(body)
            answer = upstream.getresponse()
            return answer, answer.read()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is http.server's
        """The scenes say what was sent."""


class Proxy(ThreadingHTTPServer):
    """One thread for each connection; it knows how many requests are still under way."""

    daemon_threads = True
    request_queue_size = BACKLOG

    def __init__(self, upstream_port: int) -> None:
        super().__init__((LOOPBACK, 0), type("ForwardingTo", (Forwarding,), {"upstream": upstream_port}))
        self._under_way = 0
        self._changed = threading.Condition()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def wait_until_quiet(self) -> None:
        """Returns when every request has reached its end, those of clients that gave up included."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._under_way == 0, timeout=PATIENCE):
                raise TimeoutError("a request is still under way in the proxy")

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._under_way += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The app went away, or the client did: the other side sees its connection end, as in life."""


@contextlib.contextmanager
def proxying(upstream_port: int) -> Iterator[Proxy]:
    """A proxy before `upstream_port`, running."""
    with Proxy(upstream_port) as proxy:
        threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
