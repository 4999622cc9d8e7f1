"""A client that speaks HTTP to an application, in this process or over a socket, with the same words."""

from __future__ import annotations

import http.client
import io
import json
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from wsgiref.validate import validator

from tests.adapters.shop import PATIENCE


@dataclass(frozen=True)
class Got:
    """What came back."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __getitem__(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def replayed(self) -> bool:
        return self["Idempotent-Replayed"] == "true"

    @property
    def problem(self) -> dict[str, Any]:
        assert self["Content-Type"] == "application/problem+json"
        told: dict[str, Any] = json.loads(self.body)
        assert told["status"] == self.status
        return told

    @property
    def code(self) -> str:
        """Of a refusal; empty for an answer of the application's."""
        return self.problem["code"] if self["Content-Type"] == "application/problem+json" else ""


class Transport(Protocol):
    def exchange(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | list[bytes], leave: bool
    ) -> Got: ...


class Http:
    """One scenario's client: a case of its own, and a scope of its own for each of its users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.case = uuid.uuid4().hex

    def send(
        self,
        method: str = "POST",
        target: str = "/pay",
        *,
        key: str | None = "key-1",
        body: bytes | list[bytes] = b'{"amount":10}',
        content_type: str | None = "application/json",
        user: str | None = "alice",
        headers: Iterable[tuple[str, str]] = (),
        leave: bool = False,
    ) -> Got:
        """Sends a request; a list of chunks as a body is sent chunked; `leave` hangs up early."""
        fields = [("X-Case", self.case), *headers]
        if user is not None:
            fields.append(("X-User", f"{user}-{self.case}"))
        if key is not None:
            fields.append(("Idempotency-Key", key))
        if content_type is not None:
            fields.append(("Content-Type", content_type))
        return self._transport.exchange(method, target, fields, body, leave)

    def post(self, target: str = "/pay", **more: Any) -> Got:
        return self.send("POST", target, **more)

    def control(self, what: str) -> int:
        got = self.send("GET", f"/control/{what}", key=None, body=b"", content_type=None)
        assert got.status == 200
        return int(got.body)

    @property
    def runs(self) -> int:
        """How often the application ran in this case."""
        return self.control("runs")


class InProcess:
    """Calls a WSGI application as a server would, under wsgiref's validator."""

    def __init__(self, app: Any) -> None:
        self.app = validator(app)
        self.errors: list[BaseException] = []

    def exchange(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | list[bytes], leave: bool
    ) -> Got:
        started: list[tuple[str, list[tuple[str, str]]]] = []
        written: list[bytes] = []

        def start_response(status: str, fields: Any, exc_info: Any = None) -> Any:
            if exc_info is not None and any(written):
                raise exc_info[1].with_traceback(exc_info[2])
            started.append((status, list(fields)))
            return written.append

        try:
            iterable = self.app(environ_of(method, target, headers, body), start_response)
            try:
                for chunk in iterable:
                    written.append(chunk)
                    if leave:
                        break
            finally:
                iterable.close()
        except Exception as error:
            # Kept for the test to look at; a server would log it and break off or answer 500.
            self.errors.append(error)
            if not any(written):
                return Got(500, (("Content-Type", "text/plain"),), b"a server's own page")
        status, fields = started[-1]
        return Got(int(status[:3]), tuple(fields), b"".join(written))


def environ_of(
    method: str, target: str, headers: list[tuple[str, str]], body: bytes | list[bytes]
) -> dict[str, Any]:
    """The variables of a request, as strictly as PEP 3333 has them."""
    path, _, query = target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "shop.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(b"".join(body) if isinstance(body, list) else body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if isinstance(body, list):
        environ["HTTP_TRANSFER_ENCODING"] = "chunked"
        environ["wsgi.input_terminated"] = True
    else:
        environ["CONTENT_LENGTH"] = str(len(body))
    for name, value in headers:
        variable = name.upper().replace("-", "_")
        if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            variable = "HTTP_" + variable
        environ[variable] = (
            f"{environ[variable]},{value}" if variable.startswith("HTTP_") and (variable in environ) else value
        )
    return environ


class OverSocket:
    """Speaks to a server on the loopback device, one connection a request."""

    def __init__(self, port: int) -> None:
        self.port = port

    def exchange(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | list[bytes], leave: bool
    ) -> Got:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            chunked = isinstance(body, list)
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
            else:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(iter(body) if isinstance(body, list) else body, encode_chunked=chunked)
            if leave:
                return Got(0, (), b"")
            response = connection.getresponse()
            try:
                content = response.read()
            except http.client.IncompleteRead as cut_off:
                content = cut_off.partial
            return Got(response.status, tuple(response.getheaders()), content)
        finally:
            connection.close()
