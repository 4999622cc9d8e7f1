"""One exchange: holds the start of the answer back until the answer is recorded, or streams it beside.

An answer of known length is read whole and recorded before its first byte leaves, so a client that hangs
up gets it on its retry. One that is too large leaves a tombstone first and then passes through untouched.
A stream of unknown length is sent as it comes and recorded at its end; what a client does not wait for is
drained. The application's ``close`` is called exactly once on every path, by the server where it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import AsyncGeneratorType, CoroutineType
from typing import TYPE_CHECKING, Any, Final

from idemcore.http import NOTHING, AnswerHead, Collector, Run

if TYPE_CHECKING:
    from types import TracebackType
    from wsgiref.types import StartResponse, WSGIApplication

    ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


_ASYNC: Final = (CoroutineType, AsyncGeneratorType)


class Exchange:
    """Stands between an application and its server for one request."""

    __slots__ = ("_collector", "_run", "_server_start", "_server_write")

    def __init__(self, run: Run, start_response: StartResponse) -> None:
        self._run = run
        self._collector = Collector(run)
        self._server_start = start_response
        self._server_write: Callable[[bytes], object] | None = None

    def serve(self, app: WSGIApplication, environ: dict[str, Any]) -> Iterable[bytes]:
        """Runs the application; what it raises is settled and passes through."""
        run = self._run
        try:
            iterable: Iterable[bytes] = run.ask(app, environ, self._start)
            if self._server_write is not None:  # write() went past the limit: it is under way already
                return iterable
            return self._answer(iterable, getattr(iterable, "close", None), environ.get("wsgi.file_wrapper"))
        except BaseException as error:
            # A generator without a head raised before it answered; and of an async application nothing ran.
            answered = run.returned is not NOTHING and not isinstance(run.returned, _ASYNC)
            if not (answered and self._collector.broke()):
                run.fail(error)
            close = getattr(run.returned, "close", None)
            if close is not None:
                close()
            raise

    def _start(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None, /
    ) -> Callable[[bytes], object]:
        collector = self._collector
        if collector.head is not None:
            if exc_info is None:
                raise RuntimeError("start_response was called twice without exc_info (PEP 3333)")
            if collector.passed and exc_info[1] is not None:  # bytes may have left: what PEP 3333 asks for then
                raise exc_info[1].with_traceback(exc_info[2])
        # As AnswerHead(…) makes it, but for a call of Python's own: this is on the way of every request.
        collector.head = tuple.__new__(AnswerHead, (status, list(headers)))
        if self._server_write is not None:
            self._send_head(collector.head, exc_info)
        return self._write

    def _write(self, data: bytes) -> None:
        """The old imperative way to answer: held back as long as it may still be kept."""
        if self._server_write is not None:
            self._server_write(data)
            return
        collector = self._collector
        collector.add(data)
        if collector.overfull and collector.head is not None:
            collector.end()
            write = self._send_head(collector.head)
            for chunk in collector:  # what waits; the application has not returned an iterable yet
                write(chunk)

    def _answer(
        self, iterable: Iterable[bytes], close: Callable[[], object] | None, file_wrapper: object
    ) -> Iterable[bytes]:
        collector = self._collector
        if isinstance(iterable, (list, tuple)) and collector.head is not None and not collector.passed:
            return self._recorded(collector.head, b"".join(iterable), close)
        collector.feed(iterable)
        collector.seek_head()  # a generator may call start_response as late as before its first chunk
        head = collector.head
        if head is None:
            raise RuntimeError("the application answered without calling start_response (PEP 3333)")
        size = 0 if head.bodiless else head.announced_size
        if size is None:
            self._send_head(head)
            return _Stream(collector, close)
        if size > self._run.limit:
            self._run.finish_without_body(head, "too_large")
            self._send_head(head)
            if isinstance(file_wrapper, type) and isinstance(iterable, file_wrapper):
                return iterable  # untouched: the server may know a faster way to send it
            return _Stream(collector, close)
        return self._whole(close)

    def _whole(self, close: Callable[[], object] | None) -> Iterable[bytes]:
        collector = self._collector
        body = collector.whole()
        head = collector.head  # exc_info may have replaced it on the way
        if head is None:
            raise RuntimeError("an answer without a head")
        if body is None:  # longer than it announced
            self._send_head(head)
            return _Stream(collector, close)
        return self._recorded(head, body, close)

    def _recorded(self, head: AnswerHead, body: bytes, close: Callable[[], object] | None) -> Iterable[bytes]:
        winner = self._run.finish(head, body)
        if winner is not None:
            self._server_start(winner.status_text, winner.headers)
            body = winner.body
        else:
            self._send_head(head)
        return [body] if close is None else _Closing(body, close)

    def _send_head(self, head: AnswerHead, exc_info: ExcInfo | None = None) -> Callable[[bytes], object]:
        headers = [*head.headers, *self._run.marks]
        self._server_write = (
            self._server_start(head.status_text, headers)
            if exc_info is None
            else self._server_start(head.status_text, headers, exc_info)
        )
        return self._server_write


class _Closing(list[bytes]):
    """One chunk, in a list so that the server can tell its length, with the application's ``close``."""

    def __init__(self, body: bytes, close: Callable[[], object]) -> None:
        super().__init__([body])
        self.close = close


class _Stream:
    """Passes chunks through while they are collected."""

    def __init__(self, collector: Collector, close: Callable[[], object] | None) -> None:
        self._collector = collector
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._collector)

    def close(self) -> None:
        close, self._close = self._close, None
        try:
            self._collector.drain()
        finally:
            if close is not None:
                close()
