"""A worker's time limit strikes after the application has answered: the work is done and never runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from types import FrameType
from typing import Any

import pytest
from flask import Flask, Response

from idemcore import SINGLE_TENANT, Engine, identify
from idemcore.record import Record, State
from idemcore_flask import Idempotency
from idemcore_wsgi import IdempotencyMiddleware
from tests.adapters.http import environ_of
from tests.interrupts import Interrupt, Steps

OURS = ("/idemcore/http/", "/idemcore_wsgi/", "/idemcore_flask/")


class StepsSince(Steps):
    """Counts the steps from the moment at which the application has answered."""

    def __init__(self, nth: int, desk: Desk) -> None:
        super().__init__(nth, OURS)
        self._desk = desk

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        return super()._step(frame, event, argument) if self._desk.answered else self._step


class Desk:
    """One application behind the middleware or in Flask: its runs, and what is recorded of them."""

    def __init__(self, make: Callable[[Desk], Any]) -> None:
        self.runs = 0
        self.answered = False
        self.idem = Engine("memory://", observers=())
        self.app = make(self)

    def served(self) -> bytes:
        """In a context of its own, as of a worker: an interrupt may strike before it is put back as it was."""
        return copy_context().run(self._served)

    def _served(self) -> bytes:
        """As a server does: whatever is raised on the way, it closes what it was given."""
        environ = environ_of("POST", "/", [("Idempotency-Key", "k"), ("Content-Type", "text/plain")], b"x")
        got: Any = self.app(environ, lambda *_: lambda _: None)
        try:
            return b"".join(got)
        finally:
            if hasattr(got, "close"):
                got.close()

    @property
    def state(self) -> State:
        record = self.idem.get(identify(SINGLE_TENANT, "http", "k"))
        assert isinstance(record, Record)
        return record.state


def wsgi(length: int | None, body: Callable[[Desk], Any], **options: Any) -> Callable[[Desk], Any]:
    def make(desk: Desk) -> Any:
        def app(environ: Any, start_response: Any) -> Any:
            desk.runs += 1
            start_response("200 OK", [] if length is None else [("Content-Length", str(length))])
            answer = body(desk)
            desk.answered = True
            return answer

        return IdempotencyMiddleware(app, desk.idem, scope=SINGLE_TENANT, **options)

    return make


def chunks(desk: Desk) -> Iterator[bytes]:
    yield b"an"
    yield b"swer"


def flask(view: Callable[[Desk], Any], **options: Any) -> Callable[[Desk], Any]:
    def make(desk: Desk) -> Any:
        app = Flask("interrupted")
        idempotency = Idempotency(app, engine=desk.idem, scope=SINGLE_TENANT, **options)

        def ran() -> Any:
            desk.runs += 1
            answer = view(desk)
            desk.answered = True
            return answer

        app.add_url_rule("/", view_func=idempotency.required(ran), methods=["POST"], endpoint="ran")
        return app.wsgi_app

    return make


WAYS: dict[str, Callable[[Desk], Any]] = {
    "wsgi, a list": wsgi(6, lambda desk: [b"answer"]),
    "wsgi, a list without a length": wsgi(None, lambda desk: [b"answer"]),
    "wsgi, chunks of a known length": wsgi(6, chunks),
    "wsgi, too large": wsgi(6, chunks, max_response_bytes=2),
    "wsgi, not kept": wsgi(6, lambda desk: [b"answer"], keep=lambda head: False),
    "wsgi, redacted": wsgi(6, lambda desk: [b"answer"], redact=lambda answer: answer),
    "flask, a text": flask(lambda desk: "answer"),
    "flask, chunks of a known length": flask(
        lambda desk: Response(chunks(desk), headers={"Content-Length": "6"})
    ),
    "flask, not kept": flask(lambda desk: "answer", keep=lambda head: False),
}
STREAMS: dict[str, Callable[[Desk], Any]] = {
    "wsgi, chunks": wsgi(None, chunks),
    "flask, chunks": flask(lambda desk: Response(chunks(desk))),
}


def struck_at_each_step(make: Callable[[Desk], Any]) -> list[State]:
    """What became of the record, for each step from the answer on that an interrupt struck once."""
    states: list[State] = []
    while True:
        desk = Desk(make)
        steps = StepsSince(len(states) + 1, desk)
        try:
            with steps:
                desk.served()
        except Interrupt:
            pass
        if not steps.struck:
            assert len(states) > 10
            return states
        states.append(desk.state)


@pytest.mark.parametrize("make", WAYS.values(), ids=WAYS)
def test_an_interrupt_anywhere_between_the_answer_and_its_record_frees_nothing(
    make: Callable[[Desk], Any],
) -> None:
    """OUT-04: one stopped worker would have been a second charge; each step is struck once."""
    assert set(struck_at_each_step(make)) <= {State.COMPLETED, State.TOMBSTONE}


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_an_interrupt_in_a_stream_frees_nothing(make: Callable[[Desk], Any]) -> None:
    """OUT-03: the client has the beginning of an answer; closing is what an interrupted server still does."""
    assert State.RELEASED not in struck_at_each_step(make)
