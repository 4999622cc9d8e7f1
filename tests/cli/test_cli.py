"""The command line: what each command prints, its exit status, and what it never prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from idemcore import SINGLE_TENANT, MemoryStore, NotReplayable, OutcomeUnknown, Policy, fingerprint
from idemcore.cli.main import commands
from idemcore.stores.sql import SQLAlchemyStore
from tests.cli.shell import Shell
from tests.conditions import until


def days_ago(shell: Shell, days: float) -> None:
    shell.behind = days * 86400


def test_sweep_removes_what_is_past_retention_and_says_how_much(shell: Shell) -> None:
    """SWE-01: ten finished and one abandoned go, five live ones stay, the second run finds nothing."""
    days_ago(shell, 3)
    for number in range(10):
        shell.attempt(f"old-{number}").complete(b"")
    crashed = shell.attempt("crashed").identity
    lost = {"digest": crashed.digest, "scope": "tenant-7", "operation": "charge"}
    days_ago(shell, 0)
    for number in range(5):
        shell.attempt(f"new-{number}").complete(b"")
    first = shell.run("sweep", "--batch", "4", "--json")
    assert (first.exit_code, json.loads(first.stdout)) == (
        0,
        {"finished": 10, "abandoned": 1, "stopped": False, "lost": [lost]},
    )
    again = shell.run("sweep")
    assert (again.exit_code, again.stdout) == (0, "removed 0 finished and 0 abandoned\n")
    assert len(json.loads(shell.run("ls", "--json").stdout)) == 5


@pytest.mark.parametrize(
    ("url", "status", "says"),
    [
        ("nonsense", 2, "--store, or IDEMCORE_STORE: A store is named by a URL"),
        ("nosuch://root:hunter2@host/db", 2, "nosuch://"),
        ("sqlite:////no/such/folder/x.db", 2, "no such SQLite file"),
        ("postgresql://root:hunter2@127.0.0.1:1/db", 1, "PostgreSQL"),
        ("sqlite:///{tmp}/empty.db", 2, "missing"),
    ],
)
def test_failures_are_one_line_and_an_exit_status(url: str, status: int, says: str, tmp_path: Path) -> None:
    """SWE-05: no traceback and no password in the output; 1 where trying again may help, else 2."""
    for command in (["sweep"], ["ls"], ["show", "k"]):
        (tmp_path / "empty.db").touch()
        result = CliRunner().invoke(commands, [*command, "--store", url.format(tmp=tmp_path)])
        assert result.exit_code == status, result.output
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        assert says in line
        assert "hunter2" not in result.output
        assert "Traceback" not in result.output


def test_without_a_store_the_option_is_asked_for() -> None:
    """The message names the option; nothing is guessed."""
    result = CliRunner().invoke(commands, ["sweep"], env={"IDEMCORE_STORE": ""})
    assert result.exit_code == 2
    assert "--store" in result.stderr


def test_init_db_makes_the_table_and_may_be_repeated(tmp_path: Path) -> None:
    """From an empty file to a store that answers, in one command."""
    store = ["--store", f"sqlite:///{tmp_path / 'new.db'}"]
    for _ in range(2):
        result = CliRunner().invoke(commands, ["init-db", *store])
        assert (result.exit_code, result.stdout) == (0, "ready\n")
    assert CliRunner().invoke(commands, ["sweep", *store]).exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_sigterm_ends_a_sweep_after_its_batch(shell: Shell) -> None:
    """SWE-05: the batch in hand is done, the counts are right, the exit status is 0."""
    days_ago(shell, 3)
    for number in range(200):
        shell.attempt(f"old-{number}").complete(b"")
    command = [sys.executable, "-m", "idemcore", "sweep", "--batch", "1", "--json"]
    environment = {**os.environ, "IDEMCORE_STORE": shell.url}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as sweeper:
        assert until(lambda: count(shell) < 200)
        sweeper.send_signal(signal.SIGTERM)
        out, _ = sweeper.communicate(timeout=60)
    document = json.loads(out)
    assert sweeper.returncode == 0
    assert document["stopped"] is True
    assert document["finished"] == 200 - count(shell)
    assert 0 < document["finished"] < 200


def count(shell: Shell) -> int:
    return len(shell.store.find(limit=1000))


def test_ls_shows_digests_and_states_and_never_a_key(shell: Shell) -> None:
    """What an operator sees at a glance; the digest is the one that logs and errors show."""
    secret = shell.attempt("secret-key")
    shell.attempt("other-key").complete(b"secret-answer")
    for form in ([], ["--json"]):
        output = shell.run("ls", *form).output
        assert "secret" not in output
        assert secret.identity.digest in output
        assert "claimed" in output
        assert "completed" in output
    only = json.loads(shell.run("ls", "--json", "--state", "claimed").stdout)
    assert [row["digest"] for row in only] == [secret.identity.digest]
    secret.release()


def test_show_hides_the_body_unless_asked(shell: Shell) -> None:
    """Answers hold personal data and tokens: size and time are enough for most questions."""
    shell.attempt("k").complete(b"secret-answer", {"n": 1})
    asked = ["show", "k", "--scope", "tenant-7", "--operation", "charge"]
    plain = json.loads(shell.run(*asked, "--json").stdout)
    assert (plain["state"], plain["body_bytes"], "body" in plain) == ("completed", 13, False)
    assert "secret-answer" in shell.run(*asked, "--body").stdout
    missing = shell.run("show", "nothing", "--scope", "tenant-7")
    assert (missing.exit_code, "no such record under scope tenant-7" in missing.stderr) == (2, True)


def test_what_others_wrote_is_shown_as_it_is_and_never_obeyed(shell: Shell) -> None:
    """SEC: brackets are no markup, and no escape sequence or line break reaches the terminal."""
    shell.attempt("k", scope="[/x]", operation="/x/[/y]\x1b[2J\x9b\u202e").complete(
        b"\x1b[2J\r\nstate: claimed\n"
    )
    listed = shell.run("ls")
    assert (listed.exit_code, "[/x]" in listed.stdout, "/x/[/y]\ufffd[2J\ufffd\ufffd" in listed.stdout) == (
        0,
        True,
        True,
    )
    (row,) = json.loads(shell.run("ls", "--json").stdout)
    shown = shell.run("show", f"#{row['digest']}", "--body")
    assert "body: \ufffd[2J\ufffd\ufffdstate: claimed" in shown.stdout
    assert not shown.stdout.endswith("\ufffd\n")  # the newline at a body's end is no trick
    for output in (listed.stdout, shown.stdout):
        assert all(char.isprintable() or char == "\n" for char in output)
    told = json.loads(shell.run("show", f"#{row['digest']}", "--body", "--json").stdout)
    assert told["body"] == "\x1b[2J\r\nstate: claimed\n"


@pytest.mark.parametrize("command", [("ls", "--limit"), ("sweep", "--batch")])
def test_a_count_that_no_database_takes_is_refused(shell: Shell, command: tuple[str, str]) -> None:
    """The message names the range."""
    shell.attempt("k").complete(b"")
    assert shell.run(*command, str(2**31 - 1)).exit_code == 0
    for count_ in (2**31, 2**63, 0):
        refused = shell.run(*command, str(count_))
        assert (refused.exit_code, "1<=x<=2147483647" in refused.stderr) == (2, True)


def test_show_without_a_scope_means_single_tenant(shell: Shell) -> None:
    """As the program said it."""
    shell.attempt("k", scope=SINGLE_TENANT, operation="http").complete(b"")
    assert shell.run("show", "k").exit_code == 0


@pytest.mark.parametrize(("verdict", "runs_again"), [("done", False), ("not-done", True)])
def test_an_operator_resolves_an_unknown_outcome(shell: Shell, verdict: str, runs_again: bool) -> None:
    """It is asked first and told what the verdict means; a no changes nothing."""
    block = Policy(on_abandoned="block")
    shell.attempt("k", policy=block).unknown("timeout")
    asked = ["resolve", "k", "--scope", "tenant-7", "--operation", "charge", "--as", verdict]
    refused = shell.run(*asked, typed="n\n")
    assert refused.exit_code == 1
    with pytest.raises(OutcomeUnknown):
        shell.begin("k", policy=block)
    agreed = shell.run(*asked, typed="y\n")
    assert agreed.exit_code == 0
    assert agreed.stdout.splitlines()[-1].startswith(f"resolved as {verdict}: #")
    assert "Sure?" in agreed.output
    if runs_again:
        assert shell.attempt("k", policy=block).number == 2
    else:
        assert json.loads(shell.run("ls", "--json").stdout)[0]["state"] == "tombstone"


@pytest.mark.parametrize(("said", "days"), [((), 30), (("--keep-for", "400"), 400)])
def test_a_late_verdict_is_kept_for_thirty_days_or_as_long_as_the_operator_says(
    shell: Shell, said: tuple[str, ...], days: int
) -> None:
    """SWE-04: the record's own time was over, and the verdict does not end with the engine's single day."""
    shell.behind = 40 * 86_400
    shell.attempt("k", policy=Policy(on_abandoned="block"))
    shell.behind = 0
    named = ("k", "--scope", "tenant-7", "--operation", "charge")
    settled = shell.run("resolve", *named, "--as", "done", *said, "--yes")
    assert settled.exit_code == 0, settled.output
    shell.behind = -(days * 86_400 - 60)
    with pytest.raises(NotReplayable):
        shell.begin("k")
    shell.behind = -(days * 86_400 + 60)
    shell.attempt("k")


def test_what_still_runs_cannot_be_resolved(shell: Shell) -> None:
    """A standing lease is somebody's work in progress."""
    attempt = shell.attempt("k", policy=Policy(lease=timedelta(minutes=5)))
    result = shell.run(
        "resolve", "k", "--scope", "tenant-7", "--operation", "charge", "--as", "not-done", "--yes"
    )
    assert (result.exit_code, "This record is claimed" in result.stderr) == (2, True)
    attempt.complete(b"")


def fingerprint_of(tmp_path: Path, *arguments: str, **bodies: str) -> Result:
    for name, body in bodies.items():
        (tmp_path / name).write_text(body)
    files = [str(tmp_path / name) for name in bodies]
    return CliRunner().invoke(commands, ["fingerprint", *arguments, *files])


def test_fingerprint_prints_the_canonical_form(tmp_path: Path) -> None:
    """The same that the library computes, excluded members left out."""
    result = fingerprint_of(tmp_path, "--exclude", "/sent_at", a='{"sent_at": 5, "b": 1.50, "a": "é"}')
    form, tagged = result.stdout.splitlines()
    assert form == '{"a":"é","b":1.5}'
    assert tagged == fingerprint({"a": "é", "b": 1.5}, exclude=["/sent_at"])


def test_fingerprint_says_why_a_body_is_compared_byte_for_byte(tmp_path: Path) -> None:
    """CAN-05: a duplicate member is named; the fingerprint is that of the bytes."""
    result = fingerprint_of(tmp_path, "--json", a='{"a":1,"a":2}')
    document = json.loads(result.stdout)
    assert (result.exit_code, document["canonical"]) == (0, None)
    assert "duplicate" in document["raw_because"]


def test_fingerprint_reads_standard_input() -> None:
    """A dash stands for it."""
    result = CliRunner().invoke(commands, ["fingerprint", "-"], input=b"[1.0]")
    assert result.stdout.splitlines()[0] == "[1]"


def test_diff_names_the_members_that_differ(tmp_path: Path) -> None:
    """The answer to "why is this a different request?", numbers and look-alike strings kept apart."""
    one = '{"amount": 10, "lines": [{"sku": "a"}], "ref": "1", "same": 1.0}'
    other = '{"amount": 11, "lines": [{"sku": "a"}, {"sku": "b"}], "ref": 1, "same": 1}'
    result = fingerprint_of(tmp_path, "--diff", a=one, b=other)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "$.amount: 10 -> 11",
        '$.lines[1]: absent -> {"sku": "b"}',
        '$.ref: "1" -> 1',
    ]


def test_diff_of_one_request_in_two_spellings(tmp_path: Path) -> None:
    """Exit status 0, like diff's."""
    result = fingerprint_of(tmp_path, "--diff", a='{"a": 1, "b": 2.0}', b='{"b":2,"a":1e0}')
    assert (result.exit_code, result.stdout) == (0, "the same request\n")


def test_diff_wants_two_files(tmp_path: Path) -> None:
    """A wrong call is a usage error."""
    assert fingerprint_of(tmp_path, "--diff", a="{}").exit_code == 2
    assert fingerprint_of(tmp_path, a="{}", b="{}").exit_code == 2


def test_a_scope_is_taken_as_ls_shows_it(shell: Shell) -> None:
    """Tuples have a spelling of their own in the store."""
    shell.attempt("k", scope=("tenant-7", 7)).complete(b"")
    (row,) = json.loads(shell.run("ls", "--json").stdout)
    shown = shell.run("show", "k", "--scope", row["scope"], "--operation", "charge")
    assert (shown.exit_code, "completed" in shown.stdout) == (0, True)


def test_ls_open_shows_what_nobody_has_ended(shell: Shell) -> None:
    """Unknown outcomes and dead runs; those without hold too, which a retry may run again or may refuse."""
    days_ago(shell, 0.01)
    block = Policy(on_abandoned="block")
    died = shell.attempt("died", policy=block)
    days_ago(shell, 0.005)
    rerun = shell.attempt("under-rerun")
    days_ago(shell, 0)
    with pytest.raises(OutcomeUnknown):  # the policy has changed since
        shell.begin("under-rerun", policy=block)
    doubtful = shell.attempt("doubtful")
    doubtful.unknown("timeout")
    running = shell.attempt("running", policy=block)
    rows = json.loads(shell.run("ls", "--open", "--json").stdout)
    assert [(row["digest"], row["state"], row["hold"]) for row in rows] == [
        (died.identity.digest, "abandoned", True),
        (rerun.identity.digest, "abandoned", False),
        (doubtful.identity.digest, "unknown", True),
    ]
    assert shell.run("resolve", f"#{died.identity.digest}", "--as", "done", "--yes").exit_code == 0
    assert len(json.loads(shell.run("ls", "--open", "--json").stdout)) == 2
    running.release()


def test_lists_are_walked_in_pages(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many records there are, no command asks for more than one page at once, nor misses one."""
    asked: list[int] = []
    find = SQLAlchemyStore.find

    def counted(store: SQLAlchemyStore, **which: Any) -> Any:
        asked.append(which["limit"])
        return find(store, **which)

    monkeypatch.setattr(SQLAlchemyStore, "find", counted)
    monkeypatch.setattr("idemcore.cli.records._PAGE", 3)
    attempts = []
    for number in range(7):  # apart by more than it takes to read a page: ages are those of its reading
        shell.behind = 3600.0 * (7 - number)
        attempts.append(shell.attempt(f"k-{number}"))
    shell.behind = 0
    for attempt in attempts:
        attempt.unknown("timeout")
    assert len(json.loads(shell.run("ls", "--open", "--json").stdout)) == 7
    (oldest,) = json.loads(shell.run("ls", "--limit", "1", "--json").stdout)
    assert oldest["digest"] == attempts[0].identity.digest
    for attempt in attempts:
        assert shell.run("show", f"#{attempt.identity.digest}").exit_code == 0
    assert set(asked) == {3}


def test_a_list_that_is_cut_off_says_so(shell: Shell) -> None:
    """Beside the rows, so that what reads JSON still can; and not where all are shown."""
    for key in "abc":
        shell.attempt(key).complete(b"")
    cut = shell.run("ls", "--limit", "1", "--json")
    assert (len(json.loads(cut.stdout)), cut.stderr) == (1, "2 more: see --limit\n")
    assert shell.run("ls", "--limit", "3").stderr == ""


def test_what_has_moved_on_may_be_tried_again(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 1: another operator was faster."""
    shell.attempt("k").unknown("timeout")
    monkeypatch.setattr(SQLAlchemyStore, "resolve", lambda *_, **__: False)
    asked = ["resolve", "k", "--scope", "tenant-7", "--operation", "charge", "--as", "done", "--yes"]
    result = shell.run(*asked)
    assert (result.exit_code, "moved on" in result.stderr) == (1, True)


def test_the_help_says_what_a_fingerprint_is_of() -> None:
    """A body's is not the one that a record shows."""
    text = " ".join(CliRunner().invoke(commands, ["fingerprint", "--help"]).stdout.split())
    assert "A body is one part of an HTTP request" in text


def test_it_runs_as_a_module(shell: Shell) -> None:
    """Where no script is on the path."""
    command = [sys.executable, "-m", "idemcore", "ls", "--json", "--store", shell.url]
    assert json.loads(subprocess.check_output(command)) == []


@pytest.mark.parametrize("arguments", [[], ["ls", "--json"]], ids=str)
def test_without_its_extra_it_says_what_to_install(arguments: list[str]) -> None:
    """One line and exit status 2, no traceback."""
    script = "import sys; sys.modules['click'] = None; from idemcore.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    says = "The command line needs click: pip install 'idemcore[cli]'"
    told = json.dumps({"error": says, "exit_status": 2}) if arguments else f"Error: {says}"
    assert result.stderr == f"{told}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["show", "nothing"], 2, "no such record"),
        (["show"], 2, "Missing argument 'KEY|#DIGEST'"),
        (["ls", "--limit", "0"], 2, "1<=x"),
        (["ls", "--nonsense"], 2, "--nonsense"),
        (["nonsense"], 2, "No such command"),
        (["resolve", "k", "--as", "done"], 1, "Aborted!"),
        (["sweep", "--store", "postgresql://root:hunter2@127.0.0.1:1/db"], 1, "PostgreSQL"),
        (["sweep", "--store", "nonsense"], 2, "URL"),
        (["ddl", "--dialect", "nonsense"], 2, "nonsense"),
        (["fingerprint", "no-such-file"], 2, "no-such-file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_failure_is_json_where_answers_are(
    shell: Shell, arguments: list[str], status: int, says: str
) -> None:
    """For programs: on standard error, with the exit status of the same failure in words."""
    shell.attempt("k", scope=SINGLE_TENANT, operation="http").unknown("timeout")
    result = shell.run(*arguments, "--json")
    told = json.loads(result.stderr.splitlines()[-1])
    assert (told.keys(), told["exit_status"]) == ({"error", "exit_status"}, status)
    assert says in told["error"]
    assert (result.exit_code, result.stdout.strip()) == (status, "")  # click 8.2 ends its prompt there
    plain = shell.run(*arguments)
    assert plain.exit_code == status
    assert says in plain.stderr


def test_the_table_is_as_wide_as_what_stands_in_it(shell: Shell) -> None:
    """Nothing is cut off in a pipe, and each row is one line, for grep."""
    attempt = shell.attempt("k", scope="t" * 100, operation="o" * 200)
    attempt.complete(b"")
    shell.attempt("short", scope="t").complete(b"")
    titles, first, second = shell.run("ls").stdout.splitlines()
    assert titles.split() == ["digest", "scope", "operation", "state", "hold", "attempt", "age"]
    assert first.split()[:5] == [f"#{attempt.identity.digest}", "t" * 100, "o" * 200, "completed", "1"]
    assert second.index("charge") == first.index("o" * 200) == titles.index("operation")


def test_an_answer_from_standard_input_leaves_nothing_to_answer_with(shell: Shell) -> None:
    """So it goes with --yes, and is refused before it is read."""
    shell.attempt("k").unknown("timeout")
    asked = ["resolve", "k", "--scope", "tenant-7", "--operation", "charge", "--as", "done", "--answer", "-"]
    refused = shell.run(*asked, "--unchecked", typed="{}")
    assert (refused.exit_code, "add --yes" in refused.stderr) == (2, True)
    given = shell.run(*asked, "--unchecked", "--yes", "--json", typed="{}")
    assert json.loads(given.stdout)["answer_bytes"] == 2


def test_json_before_the_command_is_told_where_it_goes() -> None:
    """A program that reads JSON gets JSON."""
    result = CliRunner().invoke(commands, ["--json", "ls", "--store", "memory://"])
    told = json.loads(result.stderr)
    assert (result.exit_code, told["exit_status"]) == (2, 2)
    assert "ls --json" in told["error"]
    assert result.stdout == ""


@pytest.mark.parametrize("in_json", [False, True])
def test_an_interrupted_command_says_so(in_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C under --json is an object on standard error like any other failure."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MemoryStore, "find", interrupted)
    result = CliRunner().invoke(commands, ["ls", "--store", "memory://", *(["--json"] if in_json else [])])
    assert result.exit_code == 1
    said = result.stderr.strip()
    assert (json.loads(said) if in_json else said) == (
        {"error": "Aborted!", "exit_status": 1} if in_json else "Aborted!"
    )
