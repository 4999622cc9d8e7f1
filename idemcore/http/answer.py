"""An answer as it is kept and given back: status, header fields in order, body bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeGuard

from idemcore.errors import ConfigurationError, NotReplayable, RecordUnreadable
from idemcore.http.headers import can_be_sent, is_field
from idemcore.record import Answer, Outcome

_LENGTH_OF_NAME: Final = len("content-length")
_STATUS: Final = re.compile(r"[1-5][0-9][0-9]( [\t -~\x80-\xff]*)?\Z")


class HTTPAnswer(NamedTuple):
    """A whole answer.

    Attributes:
        status_text: what stands in the status line, such as ``"201 CREATED"``.
        headers: names and values, in order, repeats included.
        body: the bytes.
        is_replay: whether it is a kept answer given back, and not a refusal.
    """

    status_text: str
    headers: list[tuple[str, str]]
    body: bytes
    is_replay: bool = False

    @property
    def status(self) -> int:
        """The status code, such as 201."""
        return int(self.status_text[:3])

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever the case of its name."""
        wanted, length = name.lower(), len(name)
        for key, value in self.headers:
            if len(key) == length and key.lower() == wanted:
                return value
        return None

    def __repr__(self) -> str:
        return f"HTTPAnswer({self.status_text!r}, body=<{len(self.body)} bytes>)"


def to_meta(status: str, headers: list[tuple[str, str]], size: int) -> dict[str, object]:
    """What is recorded beside a body of `size` bytes; takes the list over.

    A Content-Length that does not say that size is put right, lest a replay announces bytes that never come.
    A 304 has no body and may announce the length of what it stands for (RFC 9110, section 8.6).
    """
    for number, (name, _) in enumerate(headers):
        if len(name) == _LENGTH_OF_NAME and name.lower() == "content-length" and status[:3] != "304":
            headers[number] = (name, str(size))
    return {"status": status, "headers": headers}


def is_status(status: object) -> TypeGuard[str]:
    """Whether it is a status line's text that can be sent, and has a meaning (RFC 9110, section 15)."""
    return isinstance(status, str) and _STATUS.match(status) is not None


def fault_of(status: object, headers: object, body: object) -> str | None:
    """What keeps these from being an answer; None where they are one. Nothing of their content is told.

    Whoever makes an answer by hand is asked here, for what cannot be sent must not be kept as the answer.
    """
    if not is_status(status):
        return "the status is a text such as '201 Created'"
    if not isinstance(headers, (list, tuple)) or not all(map(is_field, headers)):
        return "the headers are a list of (name, value), texts as RFC 9110 has them in section 5"
    if not isinstance(body, bytes):
        return f"the body is bytes, not {type(body).__name__}"
    return None


def kept_answer(status: str, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    """An answer as an operator hands it to `Engine.resolve`, for the retries of a request to be given.

    Args:
        status: the status line's text, such as ``"201 CREATED"``.
        headers: names and values.
        body: the bytes.

    Raises:
        ConfigurationError: this is no answer that could be given.
    """
    # A mapping's names alone are no fields.
    fields = list(headers) if isinstance(headers, Iterable) and not isinstance(headers, Mapping) else None
    fault = fault_of(status, fields, body)
    if fault is not None or fields is None:
        raise ConfigurationError(f"This is no HTTP answer: {fault}.")
    return Answer("http", json.dumps(to_meta(status, fields, len(body))).encode(), body)


def from_outcome(outcome: Outcome, marker: str) -> HTTPAnswer:
    """The answer that gives a kept outcome back, marked as a replay by a header named `marker`.

    Raises:
        NotReplayable: the application recorded an outcome by itself, and that is no HTTP answer.
        RecordUnreadable: the record is damaged.
    """
    kind, body, meta, _ = outcome
    status, headers = meta.get("status"), meta.get("headers")
    if kind != "http":
        raise NotReplayable(
            "The operation is done, but its answer is not kept. Look the result up; do not send it again "
            "under another key.",
            reason="no_http_answer",
        )
    if not is_status(status) or not isinstance(headers, list):
        raise RecordUnreadable("The record under this key holds no HTTP answer.")
    try:
        fields = [(str(name), str(value)) for name, value in headers]
    except (TypeError, ValueError) as error:
        raise RecordUnreadable("The record under this key holds damaged headers.") from error
    if not can_be_sent(fields):  # no server takes them, and a line break would begin an answer of its own
        raise RecordUnreadable("The record under this key holds headers that cannot be sent.")
    fields.append((marker, "true"))
    # As HTTPAnswer(…) makes it, but for a call of Python's own: this is on the way of every replay.
    return tuple.__new__(HTTPAnswer, (status, fields, body, True))
