"""The scripted client: it sends, remembers what came back, and retries the way the answers tell it to."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from processes import LOOPBACK

TRIES = 20


@dataclass(frozen=True)
class Answer:
    """What one send got back; status 0 when nothing came."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def lost(self) -> bool:
        return self.status == 0

    @property
    def replayed(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"

    @property
    def retry_after(self) -> float | None:
        value = self.headers.get("retry-after")
        return None if value is None else float(value)

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The `code` of a problem answer, or an empty string."""
        if self.headers.get("content-type") != "application/problem+json":
            return ""
        return str(self.json.get("code", ""))

    def __str__(self) -> str:
        if self.lost:
            return "nothing"
        return f"{self.status}{' replayed' if self.replayed else ''}{f' {self.code}' if self.code else ''}"


@dataclass(frozen=True)
class Exchange:
    """One send on the time line; times in seconds since the epoch."""

    who: str
    what: str
    sent_at: float
    answered_at: float
    answer: Answer


class Client:
    """Sends payments to one port; every exchange goes to `record`."""

    def __init__(self, port: int, record: Callable[[Exchange], None]) -> None:
        self._port = port
        self._record = record

    def send(
        self,
        path: str,
        body: str,
        *,
        token: str,
        key: str,
        fault: str = "",
        who: str = "client",
        what: str,
        timeout: float = 15.0,
    ) -> Answer:
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Idempotency-Key": f'"{key}"',
        }
        if fault:
            headers["Proxy-Fault"] = fault
        sent_at = time.time()
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=timeout)
        try:
            connection.request("POST", path, body.encode(), headers)
            response = connection.getresponse()
            content = response.read()
            answer = Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, content
            )
        except (OSError, http.client.HTTPException):
            answer = Answer(0)
        finally:
            connection.close()
        self._record(Exchange(who, what, sent_at, time.time(), answer))
        return answer

    def send_until_done(self, path: str, body: str, **how: Any) -> list[Answer]:
        """Every answer, in order, up to the first that is final: the same key again after each other one."""
        answers = []
        for _ in range(TRIES):
            answer = self.send(path, body, **how)
            answers.append(answer)
            if answer.lost:
                how.pop("fault", None)
            elif answer.status in (409, 503) and answer.retry_after is not None:
                time.sleep(answer.retry_after)
            else:
                break
        return answers

    def send_together(self, count: int, path: str, body: str, **how: Any) -> list[list[Answer]]:
        """`count` clients send the same at the same moment and each goes on until it has a final answer."""
        ready = threading.Barrier(count)

        def one(number: int) -> list[Answer]:
            ready.wait(timeout=15)
            return self.send_until_done(path, body, who=f"client {number + 1}", **how)

        with ThreadPoolExecutor(count) as clients:
            return list(clients.map(one, range(count)))
