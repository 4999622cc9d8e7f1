"""How an operator names a record: `#` is a digest and never a key, and what fits two records is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from idemcore import SINGLE_TENANT, Identity, OutcomeUnknown
from tests.cli.shell import Shell

TWINS = ("03326810", "07807659")
"""Keys of tenant-7 and "charge" whose digests have the first twelve digits in common: found by trying."""

NAMED = ("--scope", "tenant-7", "--operation", "charge")
COMMANDS = [("show",), ("resolve", "--as", "done"), ("release",), ("forget",)]
VERDICTS = [
    (("resolve", "--as", "done"), "resolved as done"),
    (("resolve", "--as", "not-done"), "resolved as not-done"),
    (("release",), "released"),
    (("forget",), "forgotten"),
]


def doubtful(shell: Shell, key: str, **changes: Any) -> Identity:
    attempt = shell.attempt(key, **changes)
    attempt.unknown("timeout")
    return attempt.identity


def states(shell: Shell) -> dict[str, str]:
    rows = json.loads(shell.run("ls", "--json").stdout)
    return {row["digest"]: row["state"] for row in rows}


def ask(shell: Shell, command: tuple[str, ...], *named: str) -> Any:
    yes = () if command == ("show",) else ("--yes",)
    return shell.run(*command, *named, *yes)


def test_a_digest_is_half_of_the_hash_of_the_framed_parts() -> None:
    """SEC: 128 bits, which nobody finds two of; with sizes, so that no two identities are one text."""
    identity = Identity("tenant-7", "charge", "k")
    # printf '8:tenant-76:charge1:k' | sha256sum
    assert identity.digest == "6e0b37d584f8ebd64e41a552f24ef3f9"
    assert repr(identity) == f"Identity(#{identity.digest})"


@pytest.mark.parametrize("digits", [32, 20, 12])
def test_a_digest_from_a_log_is_enough(shell: Shell, digits: int) -> None:
    """Whole or from its beginning on, whatever the scope and the operation."""
    named = {"scope": ("tenant-7", 7), "operation": "payouts.send"}
    identity = doubtful(shell, "secret-key", **named)
    doubtful(shell, "another")
    digest = f"#{identity.digest[:digits]}"
    shown = json.loads(shell.run("show", digest, "--json").stdout)
    assert (shown["digest"], shown["state"], shown["reason"]) == (identity.digest, "unknown", "timeout")
    assert json.loads(shell.run("show", digest.upper(), "--json").stdout)["digest"] == identity.digest
    assert shell.run("resolve", digest, "--as", "not-done", "--yes").exit_code == 0
    assert shell.attempt("secret-key", **named).number == 2


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_beginning_that_fits_two_records_settles_neither(shell: Shell, command: tuple[str, ...]) -> None:
    """A client who tries keys until two begin alike is not the one who says which of them is freed."""
    first, second = (doubtful(shell, key) for key in TWINS)
    assert first.digest[:12] == second.digest[:12]
    result = ask(shell, command, f"#{first.digest[:12]}")
    assert result.exit_code == 2
    assert first.digest in result.stderr
    assert second.digest in result.stderr
    assert set(states(shell).values()) == {"unknown"}
    assert ask(shell, command, f"#{second.digest[:20]}").exit_code == 0
    assert states(shell)[first.digest] == "unknown"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_key_that_spells_a_digest_stands_in_nobodys_place(shell: Shell, command: tuple[str, ...]) -> None:
    """A key is the client's choice: `#` and another's digest is a key too, and means the other here."""
    where: dict[str, Any] = {"scope": SINGLE_TENANT, "operation": "http"}  # what is meant where nothing is said
    victim = doubtful(shell, "order-1", **where)
    shadow = doubtful(shell, f"#{victim.digest}", **where)
    assert ask(shell, command, f"#{victim.digest}").exit_code == 0
    assert states(shell)[shadow.digest] == "unknown"
    if command != ("show",):
        assert states(shell).get(victim.digest) != "unknown"


def test_a_key_that_begins_so_is_given_as_one(shell: Shell) -> None:
    """With --literal, which changes nothing about any other key; or by a digest of its own."""
    identity = doubtful(shell, "#7")
    doubtful(shell, "k")
    refused = shell.run("show", "#7", *NAMED)
    assert (refused.exit_code, "--literal" in refused.stderr) == (2, True)
    for named in (("#7", "--literal"), (f"#{identity.digest}",)):
        shown = shell.run("show", *named, *NAMED, "--json")
        assert json.loads(shown.stdout)["digest"] == identity.digest
    assert json.loads(shell.run("show", "k", "--literal", *NAMED, "--json").stdout)["key"] == "k"


def test_a_scope_or_an_operation_beside_a_digest_holds(shell: Shell) -> None:
    """Who names another one has not meant this record; and no more records are looked at than theirs."""
    identity = doubtful(shell, "k")
    digest = f"#{identity.digest}"
    assert shell.run("show", digest, *NAMED).exit_code == 0
    for other in (("--scope", "tenant-8"), ("--operation", "http")):
        refused = shell.run("release", digest, *other, "--yes")
        assert (refused.exit_code, "of this scope and operation" in refused.stderr) == (2, True)
    assert states(shell) == {identity.digest: "unknown"}


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("4f3fbf5cd33b", "Did you mean '#4f3fbf5cd33b'?"),
        ("4f3fbf5cd33", "'#' and at least 12 of its 32 hex digits"),
        ("order-1", "'#' and at least 12 of its 32 hex digits"),
        ("#4f3fbf5cd33", "at least 12 of its 32 hex digits"),
        ("#" + "0" * 33, "at least 12 of its 32 hex digits"),
        ("#order-000000001", "--literal"),
        ("#000000000000", "no digest begins so"),
    ],
)
def test_what_names_no_record_is_told_how_one_is_named(shell: Shell, typed: str, says: str) -> None:
    """A digest without its `#`, too few digits, a key."""
    doubtful(shell, "k")
    result = shell.run("resolve", typed, "--as", "done", "--yes")
    assert (result.exit_code, says in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(("command", "said"), VERDICTS, ids=[said for _, said in VERDICTS])
def test_a_decision_names_its_record_before_and_after(
    shell: Shell, command: tuple[str, ...], said: str
) -> None:
    """Whole, with what it was and since when: the question is the last moment to see that it is another's."""
    shell.behind = 600
    identity = doubtful(shell, "k")
    second = doubtful(shell, "k-2")
    shell.behind = 0
    named = f"#{identity.digest} of charge, scope tenant-7"
    done = shell.run(*command, f"#{identity.digest[:12]}", typed="y\n")
    assert done.exit_code == 0, done.output
    question, *_ = done.stderr.splitlines()
    assert question.startswith("This record is unknown, in attempt 1, claimed 6")
    assert question.endswith(named)
    told = done.stdout.splitlines()[-1]
    assert told.startswith(f"{said}: {named}; it was unknown, claimed 6")
    document = json.loads(shell.run(*command, "k-2", *NAMED, "--yes", "--json").stdout)
    about = {name: document[name] for name in ("digest", "scope", "operation", "was")}
    assert about == {"digest": second.digest, "scope": "tenant-7", "operation": "charge", "was": "unknown"}
    assert 600 <= document["age"] < 700


def test_what_others_wrote_is_named_as_it_is_and_never_obeyed(shell: Shell) -> None:
    """SEC: a scope and an operation may hold what a terminal obeys."""
    identity = doubtful(shell, "k", operation="/x\x1b[2J\n/y", scope="t\x9b")
    done = shell.run("release", f"#{identity.digest}", typed="y\n")
    assert done.exit_code == 0
    assert "/x\ufffd[2J\ufffd/y, scope t\ufffd" in done.stdout
    assert all(char.isprintable() or char == "\n" for char in done.output)


def test_an_error_names_a_record_that_a_command_finds(shell: Shell) -> None:
    """What is pasted from a log line is a whole digest."""
    attempt = shell.attempt("k")
    attempt.unknown("timeout")
    with pytest.raises(OutcomeUnknown) as refused:
        shell.begin("k")
    digest = refused.value.key_digest
    assert f"[key #{digest}]" in str(refused.value)
    assert json.loads(shell.run("show", f"#{digest}", "--json").stdout)["digest"] == attempt.identity.digest
