"""From a whole answer to its record: what is done is never run again, whatever the policy's functions do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from idemcore import SINGLE_TENANT, ConfigurationError, Engine, identify
from idemcore.http import (
    AnswerHead,
    Guard,
    HTTPAnswer,
    HTTPOptions,
    Request,
    Run,
    everything,
    successes,
    successes_and,
)
from idemcore.http.kept_answers import Keep
from idemcore.record import Record, State

HEAD = AnswerHead("201 CREATED", [("Content-Type", "text/plain")])
SECRET = "s3cr3t"


class Case:
    """One run of a request whose answer holds a secret, and what is recorded of it."""

    def __init__(self, **options: Any) -> None:
        self.idem = Engine("memory://", observers=())
        begun = Guard(self.idem, cast(HTTPOptions, options)).begin(
            Request("POST", "/", "", "", b""), "k", SINGLE_TENANT
        )
        assert isinstance(begun, Run)
        self.run = begun

    def served(self, head: AnswerHead = HEAD) -> None:
        """Does what an adapter does: what is raised on the way fails the run and passes through."""
        try:
            self.run.finish(head, SECRET.encode())
        except BaseException as error:
            self.run.fail(error)
            raise

    def served_as_stream(self, head: AnswerHead) -> None:
        """As where the body has gone out and is not there to be kept."""
        self.run.finish_without_body(head, "too_large")

    @property
    def recorded(self) -> tuple[State, str]:
        record = self.idem.get(identify(SINGLE_TENANT, "http", "k"))
        assert isinstance(record, Record)
        return record.state, record.reason


WRONG: dict[str, Callable[[HTTPAnswer], Any]] = {
    "nothing": lambda answer: None,
    "another type": lambda answer: tuple(answer),
    "headers as a mapping": lambda answer: answer._replace(headers={"Content-Type": "text/plain"}),
    "a mapping of two letters": lambda answer: answer._replace(headers={"TE": "x", "AB": "y"}),
    "no headers": lambda answer: answer._replace(headers=None),
    "headers of bytes": lambda answer: answer._replace(headers=[(b"A", b"1")]),
    "a header of three parts": lambda answer: answer._replace(headers=[("A", "1", "2")]),
    "a number as a value": lambda answer: answer._replace(headers=[("Content-Length", 5)]),
    "a line break in a value": lambda answer: answer._replace(headers=[("A", "1\r\nSet-Cookie: x")]),
    "a value that no header can hold": lambda answer: answer._replace(headers=[("A", "€")]),
    "a name that is none": lambda answer: answer._replace(headers=[("no name", "1")]),
    "no body": lambda answer: answer._replace(body=None),
    "a text as a body": lambda answer: answer._replace(body="text"),
    "a status without a number": lambda answer: answer._replace(status_text="Created"),
    "a status that is a number": lambda answer: answer._replace(status_text=201),
    "a line break in the status": lambda answer: answer._replace(status_text="201 Made\r\nA: b"),
}


@pytest.mark.parametrize("redact", WRONG.values(), ids=WRONG)
def test_a_redaction_of_a_wrong_shape_leaves_a_tombstone(redact: Callable[[HTTPAnswer], Any]) -> None:
    """SEC-01: the work is done, so it is not run again; and what cannot be given is not kept."""
    case = Case(redact=redact)
    case.served()
    assert case.recorded == (State.TOMBSTONE, "not_redacted")


class Stopped(BaseException):
    """As a server's time limit or Ctrl-C raises it."""


def stop(answer: HTTPAnswer) -> HTTPAnswer:
    raise Stopped


def test_an_interrupt_while_the_record_is_made_leaves_a_tombstone() -> None:
    """OUT-04: it passes through, and the work that was done is not run again."""
    case = Case(redact=stop)
    with pytest.raises(Stopped):
        case.served()
    assert case.recorded == (State.TOMBSTONE, "not_encodable")


def test_an_answer_that_cannot_be_recorded_leaves_a_tombstone() -> None:
    """OUT-04: an application's header that is no text is the server's to refuse, not a reason to run again."""
    odd: Any = [(b"Content-Type", "text/plain")]
    case = Case()
    case.served(AnswerHead("201 CREATED", odd))
    assert case.recorded == (State.TOMBSTONE, "not_encodable")


UNSENDABLE = {
    "line break": ("X-Note", "a\r\nSet-Cookie: b=c"),
    "line feed": ("X-Note", "a\n"),
    "NUL": ("X-Note", "a\0b"),
    "escape": ("X-Note", "\x1b[2J"),
    "euro sign": ("X-Price", "5 \u20ac"),
    "space in a name": ("X Note", "secret"),
    "line break in a name": ("X-Note\r\nX", "secret"),
    "name of no characters": ("", "secret"),
    "name that is no ASCII": ("X-Gr\u00f6\u00dfe", "secret"),
}


@pytest.mark.parametrize("field", UNSENDABLE.values(), ids=UNSENDABLE)
def test_an_answer_that_no_server_can_send_is_not_kept(
    field: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """SEC: the first client's server refuses it too; a replay would fail each time, or be another answer."""
    case = Case()
    case.served(AnswerHead("201 CREATED", [("Content-Type", "text/plain"), field]))
    assert case.recorded == (State.TOMBSTONE, "not_sendable")
    assert "cannot be sent" in caplog.text
    assert field[1] not in caplog.text


def test_a_header_that_is_not_kept_may_be_anything() -> None:
    """It is no part of what a retry is given."""
    case = Case()
    case.served(AnswerHead("201 CREATED", [("Set-Cookie", "\u20ac"), ("X-Name", "J\xfcrgen\t")]))
    assert case.recorded == (State.COMPLETED, "")


@pytest.mark.parametrize("status", ["CREATED", "OK", "", "2010 Created", "201Created", "201 Cr\u2192", "600 ?"])
@pytest.mark.parametrize("keep", [successes, everything])
def test_an_answer_whose_status_is_none_is_not_run_again(status: str, keep: Keep) -> None:
    """OUT-04: nobody knows what it means, the work may be done, and no retry could be given it."""
    for serve in (Case.served, Case.served_as_stream):
        case = Case(keep=keep)
        serve(case, AnswerHead(status, []))
        assert case.recorded == (State.TOMBSTONE, "not_encodable")


@pytest.mark.parametrize("status", ["101 Switching", "200 OK", "201 CREATED", "303 See Other"])
@pytest.mark.parametrize("on_abandoned", ["rerun", "block"])
def test_a_success_that_is_not_kept_is_done(
    status: str, on_abandoned: str, caplog: pytest.LogCaptureFixture
) -> None:
    """OUT-04: a rule about answers says nothing of the work, which a 2xx says is done: it never runs again."""
    for serve in (Case.served, Case.served_as_stream):
        case = Case(keep=lambda head: head.status == 402, on_abandoned=on_abandoned)
        serve(case, AnswerHead(status, []))
        assert case.recorded == (State.TOMBSTONE, "not_kept")
    assert "the keep rule says no to a " + status[:3] in caplog.text


NO_VERDICTS: dict[str, Callable[[AnswerHead], Any]] = {
    "raises": lambda head: 1 / 0,
    "a forgotten return": lambda head: None,
    "a number": lambda head: 0,
    "a text": lambda head: "no",
}


@pytest.mark.parametrize("keep", NO_VERDICTS.values(), ids=NO_VERDICTS)
@pytest.mark.parametrize("status", ["201 CREATED", "402 PAYMENT REQUIRED", "500 OOPS"])
def test_a_keep_rule_that_says_nothing_keeps(
    keep: Callable[[AnswerHead], Any], status: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can say whether the answer is final, so what cannot run it twice is chosen, and it is told."""
    case = Case(keep=keep)
    case.served(AnswerHead(status, []))
    assert case.recorded == (State.COMPLETED, "")
    assert "the keep rule r" in caplog.text


def test_an_async_keep_rule_keeps() -> None:
    """A coroutine is no verdict; nobody awaits it."""

    class Never:
        def __await__(self) -> Any:
            raise AssertionError

    case = Case(keep=lambda head: Never())
    case.served(AnswerHead("402 PAYMENT REQUIRED", []))
    assert case.recorded == (State.COMPLETED, "")


def test_successes_and_some_others() -> None:
    """OUT-02: what a payment API means: the decline is final, a typing error may be corrected."""
    keep = successes_and(402, 410)
    kept = [status for status in range(100, 600) if keep(AnswerHead(f"{status} Whatever", []))]
    assert kept == [*range(200, 400), 402, 410]


@pytest.mark.parametrize("statuses", [(), (200,), (402, 600), ("402",), (402.0,), (True,), ([402],)])
def test_successes_and_takes_statuses_of_refusals(statuses: Any) -> None:
    """A rule that would keep nothing more, or could never match, fails at start-up."""
    with pytest.raises(ConfigurationError, match="successes_and takes"):
        successes_and(*statuses)


def quoting(what: object) -> Any:
    raise ValueError(f"input_value={SECRET}") from RuntimeError(SECRET)


@pytest.mark.parametrize("options", [{"redact": quoting}, {"keep": quoting}], ids=["redact", "keep"])
def test_an_error_that_quotes_the_answer_is_logged_by_its_class(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-01: validators put what they were given into their errors, and a traceback prints it."""
    Case(**options).served()
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text
