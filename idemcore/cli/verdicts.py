"""``resolve``, ``release`` and ``forget``: what an operator decides, which no program may.

Each says what the decision means and asks, unless ``--yes`` says that it was read. A decision holds for the
record that was looked at: one that has moved on meanwhile is left alone, and exit status 1 says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Final, Literal

import click

from idemcore.cli.naming import Asked, Meant, identity_options, meant
from idemcore.cli.options import MayHelpLater, Wrong, answer, json_option
from idemcore.cli.records import ABANDONED, UNANSWERED, name_of, state_of
from idemcore.engine import Engine
from idemcore.http.answer import kept_answer
from idemcore.identity import Identity
from idemcore.record import Answer, Record, State

_MEANING: Final = {
    "done": "the work is done: retries are told so and nothing runs again",
    "not-done": "the work was not done: the same request may run again",
    "answer": "the work is done: retries are given this answer and nothing runs again",
    "forget": (
        "this key is free again, and all that is known of it goes: the next request under it runs, whatever "
        "it asks for"
    ),
    "forget-committed": (
        "the rows that its transaction committed are taken back, and this key is free again: the next request "
        "under it runs and commits its own, whatever it asks for"
    ),
}

_COMMITTED: Final = (
    "This record's transaction is committed: its work is done, and another run would do it a second time."
)

_yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@identity_options
@click.option(
    "--as",
    "verdict",
    type=click.Choice(["done", "not-done"]),
    required=True,
    help="What you found out about the work.",
)
@click.option(
    "--answer",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE|-",
    help="What retries are given; - is standard input, and goes with --yes.",
)
@click.option("--unchecked", is_flag=True, help="Of a function: the answer is what its codec writes.")
@click.option("--status", help="Of the answer to an HTTP request, such as 201.")
@click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="Of it; repeatable.")
@click.option(
    "--keep-for",
    type=click.IntRange(1, 36_500),
    metavar="DAYS",
    help="How long the verdict is kept at the least; 30, or as the app's own retention if that is longer.",
)
@_yes_option
@json_option
def resolve(
    idem: Engine,
    asked: Asked,
    verdict: str,
    file: str | None,
    unchecked: bool,
    status: str | None,
    header: tuple[str, ...],
    keep_for: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Settle the unknown, abandoned or unanswered outcome under KEY. Look the work up first, where it was done.
    A released record, which a retry may run again, is closed by --as done.

    --as done: retries are told that it is done, and nothing runs again. With --answer they are given the
    body in FILE: of an HTTP request with its --status and --header (Content-Type: application/json where no
    other is named), of a function its result in JSON. What a function returns is not known here, and one
    that it cannot read back stops every retry: settle it in Python, by idemcore_function.resolve, or say
    --unchecked.

    --as not-done: the same request may run again. Never of an unanswered record: its transaction is committed.

    Once the verdict is forgotten, a retry runs again: give an operation's own retention in --keep-for where it
    is longer than 30 days.
    """
    if verdict == "not-done" and (file or status or header):
        raise click.UsageError("an answer goes with --as done")
    if file is None and (status or header):
        raise click.UsageError("--status and --header go with --answer")
    if file == "-" and not yes:
        raise click.UsageError(
            "the answer is read from standard input, so nothing can be asked there: add --yes, or give a file"
        )
    named = meant(idem, asked)
    if file is not None and not unchecked and not _is_http(named):
        raise click.UsageError(
            "what this function returns is not known here: settle it in Python, resolve(function, 'returned', "
            "value)(arguments) of idemcore_function, or say --unchecked"
        )
    given = None if file is None else _answer(named, _content(file), status, header)
    kept = None if keep_for is None else timedelta(days=keep_for)
    record = _settle(idem, named, given or ("done" if verdict == "done" else "not_done"), yes, kept)
    said = {"resolved": verdict, "answer_bytes": None if given is None else len(given.body)}
    text = f"resolved as {verdict}" + (", with this answer" if given else "")
    _report(as_json, said, text, named.identity, record)


@click.command()
@identity_options
@_yes_option
@json_option
def release(idem: Engine, asked: Asked, yes: bool, as_json: bool) -> None:
    """Let the same request run again under KEY: the work was not done. As `resolve --as not-done`."""
    named = meant(idem, asked)
    record = _settle(idem, named, "not_done", yes)
    _report(as_json, {"released": True}, "released", named.identity, record)


@click.command()
@identity_options
@click.option("--undone", is_flag=True, help="You have taken back what its transaction committed.")
@_yes_option
@json_option
def forget(idem: Engine, asked: Asked, undone: bool, yes: bool, as_json: bool) -> None:
    """Free KEY, whatever its record says: the next request under it runs, be it the same or another one.

    For work that was undone, or a record that was made by mistake. Not while somebody works on it. An
    unanswered record goes only with --undone: its transaction is committed, and a retry would write the same
    rows a second time.
    """
    named = meant(idem, asked)
    record = _readable(named)
    if record.lease_stands:
        raise Wrong("Somebody works on it: its lease stands. Wait until it has ended.")
    committed = record.state is State.COMMITTED
    if committed and not undone:
        raise Wrong(
            f"{_COMMITTED} `resolve --as done` ends it without another run. Only where you have taken its rows "
            "back yourself, say --undone."
        )
    _ask(named.identity, record, "forget-committed" if committed else "forget", yes)
    if not idem.forget(named.identity, record.token):
        raise _moved_on()
    _report(as_json, {"forgotten": True}, "forgotten", named.identity, record)


def _settle(
    idem: Engine,
    named: Meant,
    verdict: Answer | Literal["done", "not_done"],
    yes: bool,
    kept: timedelta | None = None,
) -> Record:
    """Gives the verdict on what `named` is, and returns it as it was before."""
    record = _readable(named)
    if verdict == "not_done" and record.state is State.COMMITTED:
        raise Wrong(f"{_COMMITTED} `resolve --as done` ends it, once its lease is over.")
    closed_in_time = verdict != "not_done" and record.state is State.RELEASED
    if not closed_in_time and state_of(record) not in (State.UNKNOWN, ABANDONED, UNANSWERED):
        raise Wrong(
            f"This record is {state_of(record)}. Only an unknown outcome, or a run whose lease is over, is "
            "resolved; and --as done closes a released record, which a retry may run again."
        )
    _ask(named.identity, record, "answer" if isinstance(verdict, Answer) else verdict.replace("_", "-"), yes)
    if not idem.resolve(named.identity, record.token, verdict, retention=kept):
        raise _moved_on()
    return record


def _readable(named: Meant) -> Record:
    if isinstance(named.record, Record):
        return named.record
    raise Wrong(f"The record cannot be read ({named.record.reason}), and is left alone.")


def _ask(identity: Identity, record: Record, decision: str, yes: bool) -> None:
    if yes:
        return
    click.echo(
        f"This record is {state_of(record)}, in attempt {record.attempt}, claimed {record.age:.0f} s ago: "
        f"{name_of(identity)}",
        err=True,
    )
    click.confirm(f"You say that {_MEANING[decision]}. Sure?", abort=True, err=True)


def _report(as_json: bool, said: Mapping[str, object], text: str, identity: Identity, before: Record) -> None:
    """What was done, and to which record, for the log of whoever decided it."""
    was, age = state_of(before), before.age
    named = {"digest": identity.digest, "scope": identity.scope, "operation": identity.operation}
    words = f"{text}: {name_of(identity)}; it was {was}, claimed {age:.0f} s ago"
    answer(as_json, {**said, **named, "was": was, "age": round(age, 3)}, words)


def _moved_on() -> MayHelpLater:
    return MayHelpLater("The record has moved on since it was looked at. Look again.")


def _content(file: str) -> bytes:
    with click.open_file(file, "rb") as opened:
        content: bytes = opened.read()
    return content


def _is_http(named: Meant) -> bool:
    return named.identity.operation.partition(" ")[0] == "http"


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def _answer(named: Meant, body: bytes, status: str | None, header: tuple[str, ...]) -> Answer:
    is_http = _is_http(named)
    if is_http != (status is not None):
        raise click.UsageError(
            "the answer to an HTTP request has a --status" if is_http else "a function's result has no --status"
        )
    if status is None:
        if not _is_json(body):
            raise click.UsageError("a function's result is given in JSON")
        return Answer("returned", b"", body)
    if status in {str(known.value) for known in HTTPStatus}:
        status = f"{status} {HTTPStatus(int(status)).phrase}"
    fields = [tuple(part.strip() for part in line.split(":", 1)) for line in header]
    pairs = [(field[0], field[1]) for field in fields if len(field) == 2]
    if len(pairs) != len(fields):
        raise click.UsageError("a header is 'NAME: VALUE'")
    if not any(name.lower() == "content-type" for name, _ in pairs):
        if not _is_json(body):
            raise click.UsageError(
                "this answer is no JSON: say what it is, --header 'Content-Type: text/plain'"
            )
        pairs.append(("Content-Type", "application/json"))
    return kept_answer(status, pairs, body)
