"""What an operator's commands decide and show, over the program and over an app of Flask's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask
from sqlalchemy import create_engine

from idemcore import SINGLE_TENANT, FingerprintMismatch, NotReplayable, Policy, Replay, fingerprint
from idemcore.cli.main import commands
from idemcore.codec import JSON
from idemcore.stores.sql import SQLAlchemyStore
from idemcore_flask import Idempotency
from tests.cli.shell import Shell

NAMED = ("--scope", "tenant-7", "--operation", "charge")
BLOCK = Policy(on_abandoned="block")
TWENTY = fingerprint({"amount": 20})


def told(shell: Shell, *arguments: str) -> Any:
    result = shell.run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def fill(shell: Shell) -> dict[str, str]:
    """A record in each state that nobody works on; their digests."""
    shell.behind = 3600
    died = shell.attempt("died", policy=BLOCK)
    ordered = shell.commit("ordered")
    shell.behind = 0
    doubtful = shell.attempt("doubtful")
    doubtful.unknown("timeout")
    done = shell.attempt("done")
    done.complete(b"receipt")
    gone = shell.attempt("gone")
    gone.tombstone("too_large")
    freed = shell.attempt("freed")
    freed.release()
    attempts = (died, ordered, doubtful, done, gone, freed)
    return {attempt.identity.key: attempt.identity.digest for attempt in attempts}


@pytest.mark.parametrize(
    ("state", "key"),
    [
        ("abandoned", "died"),
        ("unanswered", "ordered"),
        ("unknown", "doubtful"),
        ("completed", "done"),
        ("tombstone", "gone"),
        ("released", "freed"),
    ],
)
def test_ls_takes_the_states_that_it_shows(shell: Shell, state: str, key: str) -> None:
    """An abandoned claim is one, and no claimed one; nor is an unanswered record a committed one."""
    digests = fill(shell)
    rows = told(shell, "ls", "--state", state)
    assert [(row["digest"], row["state"]) for row in rows] == [(digests[key], state)]
    for running in ("claimed", "committed"):
        assert told(shell, "ls", "--state", running) == []


def test_ls_finds_what_cannot_be_read(shell: Shell) -> None:
    """DEG: a record of a newer version is listed under a state of its own."""
    fill(shell)
    newer(shell, "done")
    (row,) = told(shell, "ls", "--state", "unreadable")
    assert "format" in row["reason"]
    assert row["operation"] == "charge"


def newer(shell: Shell, key: str) -> None:
    import sqlite3
    from contextlib import closing

    path = shell.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE idempotency_records SET format = 2 WHERE key = ?", (key,))


def test_show_says_whose_record_it_is_and_since_when(shell: Shell) -> None:
    """The raw key is there only where it was typed; a digest is not turned back into one."""
    fill(shell)
    by_key = told(shell, "show", "died", *NAMED)
    assert (by_key["key"], by_key["scope"], by_key["operation"]) == ("died", "tenant-7", "charge")
    began = datetime.fromisoformat(by_key["started_at"])
    assert timedelta(minutes=59) < datetime.now(UTC) - began < timedelta(minutes=120)
    by_digest = shell.run("show", f"#{by_key['digest']}")
    assert "scope: tenant-7" in by_digest.stdout
    assert "died" not in by_digest.stdout


def test_stats_count_and_say_what_waits(shell: Shell) -> None:
    """What a dashboard asks for; a sweep and an operator have their own numbers."""
    fill(shell)
    newer(shell, "gone")
    shell.behind = 3 * 86400
    shell.attempt("old").complete(b"x")
    shell.behind = 0
    numbers = told(shell, "stats")
    assert {state: count for state, count in numbers["states"].items() if count} == {
        "abandoned": 1,
        "unanswered": 1,
        "unknown": 1,
        "completed": 2,
        "released": 1,
        "unreadable": 1,
    }
    assert numbers["records"] == 7
    assert numbers["waiting_for_operator"] == 4
    assert numbers["waiting_for_sweep"] == 1
    assert numbers["body_bytes"] == len(b"receipt") + 1
    assert numbers["oldest_open_age"] >= 3600
    assert told(shell, "stats", "--scope", "nobody")["records"] == 0
    assert "abandoned: 1" in shell.run("stats").stdout


def test_release_lets_the_same_request_run_again(shell: Shell) -> None:
    """It asks, says what it means, and a different request stays refused."""
    fill(shell)
    asked = shell.run("release", "died", *NAMED, typed="n\n")
    assert (asked.exit_code, "the same request may run again" in asked.output) == (1, True)
    assert told(shell, "release", "died", *NAMED, "--yes")["released"] is True
    with pytest.raises(FingerprintMismatch):
        shell.begin("died", policy=BLOCK, fingerprint=TWENTY)
    assert shell.attempt("died", policy=BLOCK).number == 2
    ended = shell.run("release", "done", *NAMED, "--yes")
    assert (ended.exit_code, "This record is completed" in ended.stderr) == (2, True)


def test_forget_frees_a_key_for_any_request(shell: Shell) -> None:
    """It asks and says so; what somebody works on is left alone."""
    fill(shell)
    asked = shell.run("forget", "done", *NAMED, typed="n\n")
    assert (asked.exit_code, "whatever it asks for" in " ".join(asked.output.split())) == (1, True)
    assert isinstance(shell.begin("done"), Replay)
    assert told(shell, "forget", "done", *NAMED, "--yes")["forgotten"] is True
    settled = shell.commit("settled")
    settled.complete(b"receipt")  # a joined order that has its answer waits for nobody, and goes as any other
    assert told(shell, "forget", "settled", *NAMED, "--yes")["forgotten"] is True
    working = shell.attempt("done", fingerprint=TWENTY)
    busy = shell.run("forget", "done", *NAMED, "--yes")
    assert (busy.exit_code, "lease stands" in busy.stderr) == (2, True)
    working.complete(b"")


def test_what_died_after_its_commit_is_open_and_ended_by_a_verdict(shell: Shell) -> None:
    """OUT-04: it is listed once its lease is over, and retries then hear for good that it is done."""
    digests = fill(shell)
    running = shell.commit("running")
    listed = {row["digest"]: row["state"] for row in told(shell, "ls", "--open")}
    assert listed == {
        digests["died"]: "abandoned",
        digests["ordered"]: "unanswered",
        digests["doubtful"]: "unknown",
    }
    busy = shell.run("resolve", "running", *NAMED, "--as", "done", "--yes")
    assert (busy.exit_code, "This record is committed" in busy.stderr) == (2, True)
    asked = shell.run("resolve", "ordered", *NAMED, "--as", "done", typed="n\n")
    assert (asked.exit_code, "This record is unanswered" in asked.output) == (1, True)
    assert told(shell, "resolve", "ordered", *NAMED, "--as", "done", "--yes")["resolved"] == "done"
    with pytest.raises(NotReplayable) as refused:
        shell.begin("ordered")
    assert refused.value.final is True
    running.complete(b"")


@pytest.mark.parametrize("command", [("resolve", "--as", "done"), ("release",), ("forget",)])
def test_no_verdict_hits_a_run_whose_transaction_is_open(shell: Shell, command: tuple[str, ...]) -> None:
    """TRA: past its lease it looks abandoned, for nobody sees its mark; the lock keeps every verdict out."""
    shell.behind = 3600
    attempt = shell.attempt("joined")
    shell.behind = 0
    engine = create_engine(shell.url)
    with engine.begin() as connection:
        attempt.join(connection)
        listed = told(shell, "ls", "--open")
        shell.url += "?timeout=0.1"  # seconds that a command waits for the file
        refused = shell.run(command[0], "joined", *NAMED, *command[1:], "--yes")
    engine.dispose()
    assert [row["state"] for row in listed] == ["abandoned"]
    assert (refused.exit_code, "locked" in refused.stderr) == (1, True)
    attempt.complete(b"receipt")
    assert told(shell, "show", "joined", *NAMED)["state"] == "completed"


@pytest.mark.parametrize("command", [("release",), ("resolve", "--as", "not-done")], ids=["release", "resolve"])
@pytest.mark.parametrize("key", ["ordered", "running"])
def test_no_command_says_that_committed_work_was_not_done(
    shell: Shell, command: tuple[str, ...], key: str
) -> None:
    """Lease standing or over, `--yes` or not: refused with the way out, before anything is touched."""
    fill(shell)
    running = shell.commit("running")
    before = told(shell, "show", key, *NAMED)["state"]
    result = shell.run(command[0], key, *NAMED, *command[1:], "--yes")
    assert result.exit_code == 2
    assert "is committed" in result.stderr
    assert "resolve --as done" in result.stderr
    assert told(shell, "show", key, *NAMED)["state"] == before
    running.complete(b"")


def test_forgetting_committed_work_takes_more_than_a_yes(shell: Shell) -> None:
    """A retry would write its rows a second time: whoever frees the key says that they are taken back."""
    fill(shell)
    refused = shell.run("forget", "ordered", *NAMED, "--yes")
    assert (refused.exit_code, "a second time" in refused.stderr) == (2, True)
    assert "resolve --as done" in refused.stderr
    with pytest.raises(NotReplayable):
        shell.begin("ordered")
    asked = shell.run("forget", "ordered", *NAMED, "--undone", typed="n\n")
    assert (asked.exit_code, "are taken back" in " ".join(asked.output.split())) == (1, True)
    assert told(shell, "forget", "ordered", *NAMED, "--undone", "--yes")["forgotten"] is True
    assert shell.attempt("ordered", fingerprint=TWENTY).number == 1


@pytest.mark.parametrize("command", [("forget",), ("release",), ("resolve", "--as", "done")])
def test_what_cannot_be_read_is_left_to_whoever_wrote_it(shell: Shell, command: tuple[str, ...]) -> None:
    """A newer version's record is no business of this one's."""
    fill(shell)
    newer(shell, "doubtful")
    result = shell.run(command[0], "doubtful", *NAMED, *command[1:], "--yes")
    assert (result.exit_code, "cannot be read" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", [("forget",), ("release",)])
def test_a_decision_about_what_has_moved_on_may_be_tried_again(
    shell: Shell, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 1."""
    fill(shell)
    for verb in ("resolve", "forget"):
        monkeypatch.setattr(SQLAlchemyStore, verb, lambda *_, **__: False)
    result = shell.run(*command, "died", *NAMED, "--yes")
    assert (result.exit_code, "moved on" in result.stderr) == (1, True)


def test_retries_of_a_function_are_given_the_operators_answer(shell: Shell, tmp_path: Path) -> None:
    """A result in JSON, as the function would have returned it; that nobody here can check it is said."""
    fill(shell)
    file = tmp_path / "receipt.json"
    file.write_text('{"charged": 10}')
    asked = ["resolve", "doubtful", *NAMED, "--as", "done", "--answer", str(file)]
    refused = shell.run(*asked, "--yes")
    assert (refused.exit_code, "resolve(function, 'returned'" in refused.stderr) == (2, True)
    asked.append("--unchecked")
    question = shell.run(*asked, typed="n\n")
    assert "retries are given this answer" in question.output
    assert told(shell, *asked, "--yes")["answer_bytes"] == 15
    result = shell.idem.run(
        lambda: {"charged": 99},
        scope="tenant-7",
        operation="charge",
        key="doubtful",
        fingerprint=fingerprint({"amount": 10}),
        codec=JSON,
    )
    assert (result.value, result.replayed) == ({"charged": 10}, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--as", "not-done", "--answer", "{file}"], "an answer goes with --as done"),
        (["--as", "done", "--status", "201"], "--status and --header go with --answer"),
        (
            ["--as", "done", "--answer", "{file}", "--unchecked", "--status", "201"],
            "result has no --status",
        ),
        (["--as", "done", "--answer", "{text}", "--unchecked"], "in JSON"),
    ],
)
def test_an_answer_that_no_retry_could_be_given_is_refused(
    shell: Shell, tmp_path: Path, arguments: list[str], says: str
) -> None:
    """A usage error, before anything is changed."""
    fill(shell)
    names = {"file": tmp_path / "a.json", "text": tmp_path / "a.txt"}
    names["file"].write_text("{}")
    names["text"].write_text("charged")
    given = [argument.format(**names) for argument in arguments]
    result = shell.run("resolve", "doubtful", *NAMED, *given, "--yes")
    assert (result.exit_code, says in result.stderr) == (2, True)
    assert told(shell, "show", "doubtful", *NAMED)["state"] == "unknown"


def shop(shell: Shell) -> Flask:
    app = Flask("shop")
    Idempotency(app, engine=shell.idem, scope=SINGLE_TENANT, protect="required", on_abandoned="block")

    @app.post("/orders")
    def order() -> Any:
        raise TimeoutError

    return app


def test_retries_of_a_request_are_given_the_operators_answer(shell: Shell, tmp_path: Path) -> None:
    """A whole HTTP answer, through `flask idemcore` with no URL to repeat."""
    app = shop(shell)
    send = {"headers": {"Idempotency-Key": "order-1"}, "json": {"sku": "a"}}
    assert app.test_client().post("/orders", **send).status_code == 500
    file = tmp_path / "order.json"
    file.write_text('{"order": 7}')
    cli = app.test_cli_runner()
    asked = ["idemcore", "resolve", "order-1", "--as", "done", "--answer", str(file)]
    missing = cli.invoke(args=[*asked, "--yes"])
    assert (missing.exit_code, "has a --status" in missing.output) == (2, True)
    file.write_text('{"order": 7,')
    torn = cli.invoke(args=[*asked, "--status", "201", "--yes"])
    assert (torn.exit_code, "no JSON" in torn.output) == (2, True)
    file.write_text('{"order": 7}')
    full = [*asked, "--status", "201", "--header", "Location: /orders/7", "--yes", "--json"]
    assert json.loads(cli.invoke(args=full).stdout)["answer_bytes"] == 12
    again = app.test_client().post("/orders", **send)
    assert (again.status, again.get_json()) == ("201 Created", {"order": 7})
    assert again.headers["Location"] == "/orders/7"
    assert again.headers["Content-Type"] == "application/json"
    assert again.headers["Idempotent-Replayed"] == "true"


def test_what_was_freed_by_mistake_is_closed_before_a_retry_comes(shell: Shell, tmp_path: Path) -> None:
    """By the digest alone, for no operator knows the client's key; and then the retry has its answer."""
    app = shop(shell)
    send = {"headers": {"Idempotency-Key": "order-1"}, "json": {"sku": "a"}}
    assert app.test_client().post("/orders", **send).status_code == 500
    (row,) = told(shell, "ls", "--open")
    digest = f"#{row['digest']}"
    assert told(shell, "release", digest, "--yes")["was"] == "unknown"
    for again in (("release",), ("resolve", "--as", "not-done")):
        refused = shell.run(*again, digest, "--yes")
        assert (refused.exit_code, "This record is released" in refused.stderr) == (2, True)
    file = tmp_path / "order.json"
    file.write_text('{"order": 7}')
    asked = ["resolve", digest, "--as", "done", "--answer", str(file), "--status", "201"]
    assert "This record is released, in attempt 1" in shell.run(*asked, typed="n\n").stderr
    assert told(shell, *asked, "--yes")["was"] == "released"
    answer = app.test_client().post("/orders", **send)
    assert (answer.status, answer.get_json()) == ("201 Created", {"order": 7})


def test_a_retry_that_came_first_is_not_closed(shell: Shell) -> None:
    """It works, or has worked: the record says so, and a verdict is refused."""
    fill(shell)
    running = shell.attempt("freed")
    refused = shell.run("resolve", "freed", *NAMED, "--as", "done", "--yes")
    assert (refused.exit_code, "This record is claimed" in refused.stderr) == (2, True)
    running.complete(b"receipt")
    refused = shell.run("resolve", "freed", *NAMED, "--as", "done", "--yes")
    assert (refused.exit_code, "This record is completed" in refused.stderr) == (2, True)


def test_flask_offers_the_same_commands(shell: Shell) -> None:
    """All that need a store, with the same options less those that name it."""
    group = shop(shell).cli.commands["idemcore"]
    names = set(commands.commands) - {"ddl", "fingerprint"}
    assert set(group.commands) == names  # type: ignore[attr-defined]  # a group of click's
    for name in names:
        own = {param.name for param in group.commands[name].params}  # type: ignore[attr-defined]
        assert own == {param.name for param in commands.commands[name].params} - {"store", "table", "schema"}


COMMANDS = [
    ("sweep",),
    ("ls",),
    ("stats",),
    ("show", "k"),
    ("resolve", "k", "--as", "done", "--yes"),
    ("release", "k", "--yes"),
    ("forget", "k", "--yes"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite:///file:{}?uri=true", "sqlite+pysqlite:///{}"])
def test_a_mistyped_path_makes_no_file(tmp_path: Path, command: tuple[str, ...], url: str) -> None:
    """An operator would look into an empty file, and find that all is well."""
    path = tmp_path / "paymnets.db"
    result = CliRunner().invoke(commands, [*command, "--store", url.format(path)])
    assert (result.exit_code, "no such SQLite file" in result.stderr) == (2, True)
    assert not list(tmp_path.iterdir())


def test_every_command_over_a_store_is_in_the_list_above() -> None:
    """A new one does not make files either."""
    listed = {command[0] for command in COMMANDS}
    assert listed == set(commands.commands) - {"ddl", "fingerprint", "init-db"}


def test_a_table_of_another_name_is_found_by_every_command(tmp_path: Path) -> None:
    """What `idempotency_table(name=…)` has named, by option or by the environment."""
    store = ["--store", f"sqlite:///{tmp_path / 'a.db'}"]
    runner = CliRunner()
    assert runner.invoke(commands, ["init-db", *store, "--table", "kept"]).exit_code == 0
    for command in (["sweep"], ["ls", "--json"], ["stats"]):
        assert runner.invoke(commands, [*command, *store, "--table", "kept"]).exit_code == 0
        assert runner.invoke(commands, [*command, *store], env={"IDEMCORE_TABLE": "kept"}).exit_code == 0
        missing = runner.invoke(commands, [*command, *store])
        assert (missing.exit_code, "idemcore init-db" in missing.stderr) == (2, True)
    refused = runner.invoke(commands, ["sweep", "--store", "memory://", "--table", "kept"])
    assert (refused.exit_code, "memory" in refused.stderr) == (2, True)
