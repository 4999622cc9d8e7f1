"""A Flask response as it is recorded, and as it is given back.

Whatever has a known length is recorded before its first byte leaves; a stream is recorded at its end, which
comes after the request's teardown. On a replay the app's own hooks have run again over the kept answer:
what they added under new names stays, what they changed of it is put back, and a status that they changed
is their last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flask import Response
from werkzeug.datastructures import Headers

from idemcore.http import AnswerHead, Collector, HTTPAnswer, Run

_OF_A_BODY: Final = frozenset(
    (
        "content-type",
        "content-length",
        "content-encoding",
        "content-language",
        "content-location",
        "content-range",
        "content-disposition",
        "content-md5",
        "content-digest",
        "repr-digest",
        "digest",
    )
)
"""What describes the bytes it came with (RFC 9110, section 8; RFC 9530). Others begin with ``Content-`` too and
do not, such as Content-Security-Policy."""


def record(response: Response, run: Run) -> Response:
    """Records the answer; returns another one where that stands."""
    head = AnswerHead(response.status, list(response.headers))
    if head.bodiless:
        return _instead(run.finish(head, b""), response, run)
    if response.is_sequence:
        return _instead(run.finish(head, response.get_data()), response, run)
    length = head.announced_size
    if length is not None and length > run.limit:
        run.finish_without_body(head, "too_large")
        return response
    stream = _Stream(response, Collector(run, head))
    response.direct_passthrough = False  # else the server takes the file and our end is never reached
    response.response = stream
    if length is None:
        run.streaming = True
        return response
    body = stream.whole()
    if body is None:  # longer than it announced: it streams on
        return response
    response.response = [body]
    response.call_on_close(stream.close)
    return _instead(run.finish(head, body), response, run)


def replayed(response: Response, kept: HTTPAnswer, marker: str) -> Response:
    """The kept answer, after the app's hooks have seen it; theirs where they changed its status."""
    if response.status_code == kept.status:
        return _restored(response, kept)
    response.headers.remove(marker)
    return response


def _restored(response: Response, kept: HTTPAnswer) -> Response:
    mine = {name.lower() for name, _ in kept.headers}
    added = [
        field for field in response.headers if (name := field[0].lower()) not in mine and name not in _OF_A_BODY
    ]
    response.response = [kept.body]
    response.status = kept.status_text
    response.headers = Headers([*added, *kept.headers])
    return response


def _instead(winner: HTTPAnswer | None, response: Response, run: Run) -> Response:
    if winner is None:
        return response
    # What describes the late run's result goes with it.
    for name, _ in run.header_filter.kept(response.headers):
        response.headers.remove(name)
    return _restored(response, winner)


class _Stream:
    """Passes the response's chunks through while they are collected."""

    def __init__(self, response: Response, collector: Collector) -> None:
        self._source = response.response
        self._collector = collector
        collector.feed(response.iter_encoded())

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._collector)

    def whole(self) -> bytes | None:
        """See `Collector.whole`; where the source breaks it is closed too."""
        try:
            return self._collector.whole()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """The server is done, perhaps before the stream is."""
        source, self._source = self._source, ()
        try:
            self._collector.drain()
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()
