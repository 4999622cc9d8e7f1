"""PEP 3333 to the letter: every odd way in which an application may answer, and close() once on each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from idemcore import SINGLE_TENANT, Engine, current_attempt
from idemcore.events import Event, Settled
from idemcore_wsgi import IdempotencyMiddleware
from tests.adapters.http import Got, Http, InProcess, environ_of

PLAIN = [("Content-Type", "text/plain")]
Start = Callable[..., Any]


class Answer:
    """An iterable that counts how often it is closed, and may raise while it is iterated."""

    def __init__(self, *chunks: bytes | BaseException) -> None:
        self.chunks = iter(chunks)
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = next(self.chunks)
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk

    def close(self) -> None:
        self.closed += 1


class Desk:
    """An application behind the middleware, the runs it had and the events it caused."""

    def __init__(self, app: Any, **options: Any) -> None:
        self.runs = 0
        self.events: list[Event] = []
        self.app = app

        def counted(environ: Any, start_response: Any) -> Any:
            self.runs += 1
            return app(environ, start_response)

        self.idem = Engine("memory://", observers=[self.events.append])
        self.guarded = IdempotencyMiddleware(counted, self.idem, scope=SINGLE_TENANT, **options)
        self.transport = InProcess(self.guarded)

    def post(self, **more: Any) -> Got:
        return Http(self.transport).post("/x", **more)


def answering(iterable: Iterable[bytes], status: str = "200 OK", length: int | None = None) -> Any:
    fields = PLAIN if length is None else [*PLAIN, ("Content-Length", str(length))]

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response(status, fields)
        return iterable

    return app


@pytest.mark.parametrize("length", [None, 8])
def test_close_is_called_once_after_the_last_chunk(length: int | None) -> None:
    """HTT-04: streamed or read whole, the application's close runs once."""
    answer = Answer(b"half", b"half")
    desk = Desk(answering(answer, length=length))
    assert desk.post().body == b"halfhalf"
    assert answer.closed == 1
    assert desk.post().body == b"halfhalf"
    assert (desk.runs, answer.closed) == (1, 1)


@pytest.mark.parametrize("length", [None, 8])
@pytest.mark.parametrize("before", [0, 1])
def test_close_is_called_once_where_iteration_raises(length: int | None, before: int) -> None:
    """HTT-04: the error passes through unchanged, and the answer that broke is never run for again."""
    error = OSError("gone")
    answer = Answer(*[b"half"] * before, error)
    desk = Desk(answering(answer, length=length))
    desk.post()
    assert desk.transport.errors == [error]
    assert answer.closed == 1
    assert desk.post().code == "response_not_replayable"
    assert desk.runs == 1


@pytest.mark.parametrize("length", [None, 12])
def test_close_is_called_once_where_the_client_leaves(length: int | None) -> None:
    """HTT-04: what the client did not wait for is read for its retry, then closed once."""
    answer = Answer(b"one ", b"two ", b"three")
    desk = Desk(answering(answer, length=length))
    desk.post(leave=True)
    assert answer.closed == 1
    assert desk.post().body == b"one two three"
    assert desk.runs == 1


def test_a_client_that_leaves_before_the_first_byte_finds_its_answer() -> None:
    """A server that never iterates still closes: the answer is taken to its end."""
    answer = Answer(b"one ", b"two")
    desk = Desk(answering(answer))
    iterable: Any = desk.guarded(
        environ_of("POST", "/x", [("Idempotency-Key", "key-1"), ("Content-Type", "application/json")], b"{}"),
        lambda *_: None,
    )
    iterable.close()
    iterable.close()
    assert answer.closed == 1
    assert desk.post(body=b"{}").body == b"one two"


def test_an_endless_stream_is_not_drained_for_ever() -> None:
    """OUT: draining stops at the limit in bytes; the retry is told that the answer is not kept."""

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 1000

    desk = Desk(answering(endless()), max_response_bytes=10_000)
    desk.post(leave=True)
    assert desk.post().code == "response_not_replayable"
    assert desk.runs == 1


def test_a_drain_that_raises_leaves_a_tombstone() -> None:
    """OUT-03: the client is gone and the rest of the answer is too; it is not run again."""
    answer = Answer(b"one", OSError("gone"))
    desk = Desk(answering(answer))
    desk.post(leave=True)
    assert answer.closed == 1
    assert desk.post().code == "response_not_replayable"


NO_BYTES: dict[str, Any] = {
    "a list with a text": lambda: ["done"],
    "a text from a generator": lambda: iter(["done"]),
    "a number from a generator": lambda: iter([b"do", 5]),
    "a text itself": lambda: "done",
    "nothing": lambda: None,
}


@pytest.mark.parametrize("length", [None, 4])
@pytest.mark.parametrize("answer", NO_BYTES.values(), ids=NO_BYTES)
def test_an_answer_that_is_no_bytes_is_broken_and_settled_at_once(answer: Any, length: int | None) -> None:
    """OUT-03: the server refuses it and the work is done; a claim left behind would run it again in a while."""
    desk = Desk(answering(answer(), length=length))
    got = desk.post()
    assert [type(error) for error in desk.transport.errors] in ([TypeError], [AssertionError])
    assert got.body != b"done"
    assert desk.post().code == "response_not_replayable"
    assert desk.runs == 1


def test_a_buffer_that_is_filled_anew_is_kept_as_it_was() -> None:
    """Whatever holds bytes is copied before its owner goes on."""

    def chunks() -> Iterator[Any]:
        buffer = bytearray(b"one ")
        yield bytes(buffer)
        yield (view := memoryview(buffer))
        view[:] = b"two "
        yield view

    desk = Desk(answering(chunks()))
    environ = environ_of("POST", "/x", [("Idempotency-Key", "key-1"), ("Content-Type", "text/plain")], b"")
    sent = [bytes(chunk) for chunk in desk.guarded(environ, lambda *_: lambda _: None)]
    assert sent == [b"one ", b"one ", b"two "]
    assert desk.post(content_type="text/plain", body=b"").body == b"one one two "


def test_a_generator_may_start_late() -> None:
    """start_response as late as before the first chunk, by a generator whose whole code runs then."""

    def app(environ: Any, start_response: Start) -> Iterator[bytes]:
        attempt = current_attempt()
        start_response("201 Created", PLAIN)
        yield b""
        yield b"%d" % attempt.number
        yield b"%d" % current_attempt().number

    desk = Desk(app)
    assert desk.post().body == b"11"
    assert desk.post().body == b"11"
    assert desk.runs == 1


def test_a_generator_that_raises_before_it_starts_frees_the_request() -> None:
    """OUT-03: nothing was answered, so the same request runs again."""

    def app(environ: Any, start_response: Start) -> Iterator[bytes]:
        if desk.runs == 1:
            raise OSError("gone")
        start_response("201 Created", PLAIN)
        yield b"done"

    desk = Desk(app)
    assert desk.post().status == 500
    assert desk.post().body == b"done"
    assert desk.runs == 2


@pytest.mark.parametrize("starts", [False, True])
def test_an_application_that_returns_a_coroutine_is_an_error(starts: bool) -> None:
    """FUN-07: an ASGI app in the wrong place, say; nothing of it ran, so nothing is recorded as done."""
    made: list[Any] = []

    async def answers() -> list[bytes]:
        return [b"answer"]

    def app(environ: Any, start_response: Start) -> Any:
        if starts:
            start_response("200 OK", PLAIN)
        made.append(answers())
        return made[-1]

    desk = Desk(app)
    assert [desk.post().status for _ in range(2)] == [500, 500]
    assert desk.runs == 2
    assert [type(event).__name__ for event in desk.events].count("Settled") == 2
    for each in made:  # it closed them, as it closes whatever an application returns
        assert each.cr_frame is None


def test_an_application_that_never_starts_is_an_error() -> None:
    """An answer without a head is no answer; the claim does not stay behind."""
    answer = Answer(b"body")
    desk = Desk(lambda environ, start_response: answer)
    assert desk.post().status == 500
    assert answer.closed == 1
    assert desk.post().status == 500
    assert desk.runs == 2


def test_write_is_held_back_and_kept() -> None:
    """The old write() and the iterable after it make one answer."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        write = start_response("200 OK", PLAIN)
        write(b"one ")
        write(b"two ")
        return [b"three"]

    desk = Desk(app)
    assert desk.post().body == b"one two three"
    assert desk.post().body == b"one two three"
    assert desk.runs == 1


def test_write_beyond_the_limit_reaches_its_client_whole() -> None:
    """What cannot be kept is passed on at once, and leaves a tombstone."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        write = start_response("200 OK", PLAIN)
        for _ in range(5):
            write(b"x" * 10)
        return [b"y"]

    desk = Desk(app, max_response_bytes=25)
    assert desk.post().body == b"x" * 50 + b"y"
    assert desk.post().code == "response_not_replayable"


def test_exc_info_replaces_an_answer_that_has_not_left() -> None:
    """An error page in the answer's stead is what counts: a 500 is not kept."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        try:
            raise OSError("gone")
        except OSError:
            start_response("500 Error", PLAIN, sys.exc_info())
        return [b"sorry"]

    desk = Desk(app)
    assert (desk.post().status, desk.post().status) == (500, 500)
    assert desk.runs == 2


@pytest.mark.parametrize("length", [None, 20])
def test_exc_info_in_a_stream_before_its_first_byte_counts_too(length: int | None) -> None:
    """The head that the client got is the one that is judged, in a stream as in a whole answer."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", PLAIN if length is None else [*PLAIN, ("Content-Length", str(length))])

        def rest() -> Iterator[bytes]:
            yield b""
            try:
                raise OSError("gone")
            except OSError:
                start_response("503 Error", PLAIN, sys.exc_info())
            yield b"sorry"

        return rest()

    desk = Desk(app)
    got = desk.post()
    assert (got.status, got.body) == (503, b"sorry")
    desk.post()
    assert desk.runs == 2


def test_exc_info_after_bytes_have_left_raises_its_error() -> None:
    """PEP 3333: once bytes have left there is no other head; the error comes back and the answer is broken."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)

        def rest() -> Iterator[bytes]:
            yield b"half"
            try:
                raise OSError("gone")
            except OSError:
                start_response("500 Error", PLAIN, sys.exc_info())
            yield b"never"

        return rest()

    desk = Desk(app)
    desk.post()
    assert [type(error) for error in desk.transport.errors] == [OSError]
    assert desk.post().code == "response_not_replayable"


def test_exc_info_after_write_raises_its_error() -> None:
    """What was written counts as sent although it is held back, so the application fails as it would have."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)(b"half")
        try:
            raise OSError("gone")
        except OSError:
            start_response("500 Error", PLAIN, sys.exc_info())
        return [b"never"]

    desk = Desk(app)
    desk.post()
    desk.post()
    assert [type(error) for error in desk.transport.errors] == [OSError] * 2
    assert desk.runs == 2


def test_a_second_start_without_exc_info_is_an_error() -> None:
    """PEP 3333 calls it one."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        start_response("201 Created", PLAIN)
        return [b""]

    assert Desk(app).post().status == 500


def test_a_length_that_lies_is_put_right_for_the_retry() -> None:
    """REP-04: a replay announces the bytes that come, whatever the application had announced."""
    desk = Desk(answering([b"seven b"], length=99))
    desk.post()
    again = desk.post()
    assert (again.body, again["Content-Length"]) == (b"seven b", "7")


def test_a_short_length_does_not_let_a_large_answer_into_memory() -> None:
    """An answer that outgrows the length it announced is passed on, and not kept."""
    desk = Desk(answering(Answer(*[b"x" * 10] * 10), length=5), max_response_bytes=30)
    assert desk.post().body == b"x" * 100
    assert desk.post().code == "response_not_replayable"


def test_the_servers_file_wrapper_is_left_to_it() -> None:
    """A large file goes to the server as the object that it knows; a small one is read and kept."""

    class FileWrapper:
        def __init__(self, content: bytes) -> None:
            self.content = content

        def __iter__(self) -> Iterator[bytes]:
            yield self.content

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", "10")])
        return FileWrapper(b"x" * 10)

    for limit, untouched in ((5, True), (20, False)):
        desk = Desk(app, max_response_bytes=limit)
        environ = environ_of("POST", "/x", [("Idempotency-Key", "k")], b"")
        environ["wsgi.file_wrapper"] = FileWrapper
        answer = desk.guarded(environ, lambda *_: None)
        assert isinstance(answer, FileWrapper) == untouched
        assert b"".join(answer) == b"x" * 10


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_a_worker_that_is_stopped_frees_the_request(error: BaseException) -> None:
    """LEA-07: what is no Exception passes through unchanged and leaves no ownerless claim."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        if desk.runs == 1:
            raise error
        start_response("201 Created", PLAIN)
        return [b"done"]

    desk = Desk(app)
    with pytest.raises(type(error)):
        desk.post()
    assert desk.post().body == b"done"


def test_an_application_may_settle_by_itself() -> None:
    """release() and forget() in the application count, whatever it answers."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        if desk.runs == 1:
            current_attempt().forget()
        elif desk.runs == 2:
            current_attempt().release()
        start_response("200 OK", PLAIN)
        return [b"%d" % desk.runs]

    desk = Desk(app)
    assert desk.post().body == b"1"
    assert desk.post(body=b'"corrected"').body == b"2"
    assert desk.post(body=b'"corrected"').body == b"3"
    assert desk.post(body=b'"corrected"').replayed
    assert [event.settlement.name for event in desk.events if isinstance(event, Settled)] == [
        "FORGET",
        "RETRY",
        "KEEP",
    ]


def test_an_outcome_that_is_no_answer_is_done_and_not_replayable() -> None:
    """An application that completes by itself has said that the work is done; its retry is told so."""

    def app(environ: Any, start_response: Start) -> Iterable[bytes]:
        current_attempt().complete(b"mine")
        start_response("200 OK", PLAIN)
        return [b"done"]

    desk = Desk(app)
    assert desk.post().body == b"done"
    assert desk.post().code == "response_not_replayable"
    assert desk.runs == 1


def test_two_mounts_share_one_engine() -> None:
    """MEM-03: the path counts with its mount point, so the same request is the same at both."""
    desk = Desk(answering([b"done"]))
    environ = environ_of("POST", "/b/x", [("Idempotency-Key", "k")], b"")
    assert b"".join(desk.guarded(environ, lambda *_: None)) == b"done"
    mounted = environ_of("POST", "/x", [("Idempotency-Key", "k")], b"") | {"SCRIPT_NAME": "/b"}
    other = IdempotencyMiddleware(desk.app, desk.idem, scope=SINGLE_TENANT)
    headers: list[Any] = []
    assert b"".join(other(mounted, lambda _, fields: headers.extend(fields))) == b"done"
    assert ("Idempotent-Replayed", "true") in headers
