"""`idemcore sweep` in cron and at a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.shell import Shell

DEAD = 100


def fill(shell: Shell) -> dict[str, str]:
    shell.behind = 3 * 86400
    for number in range(DEAD):
        shell.attempt(f"old-{number}").complete(b"")
    shell.attempt("crashed")
    shell.behind = 0
    return {**os.environ, "IDEMCORE_STORE": shell.url}


SWEEP = [sys.executable, "-m", "idemcore", "sweep", "--batch", "10"]


def test_several_at_once_share_the_work(shell: Shell) -> None:
    """SWE-05: none fails, nothing is counted twice, nothing is left."""
    environment = fill(shell)
    sweepers = [
        subprocess.Popen([*SWEEP, "--json"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = [sweeper.communicate(timeout=100) for sweeper in sweepers]
    assert [(sweeper.returncode, errors) for sweeper, (_, errors) in zip(sweepers, outputs, strict=True)] == [
        (0, b"")
    ] * 3
    counts = [json.loads(out) for out, _ in outputs]
    assert sum(count["finished"] for count in counts) == DEAD
    assert sum(count["abandoned"] for count in counts) == 1
    assert shell.store.find(limit=1) == []


def test_an_abandoned_claim_is_named(shell: Shell) -> None:
    """The operator's only trace of an effect that was never recorded; by digest, as logs have it."""
    fill(shell)
    said = shell.run("sweep").stdout.splitlines()
    assert said[-1] == f"removed {DEAD} finished and 1 abandoned"
    (name,) = said[:-1]
    assert name.startswith("abandoned: #")
    assert name.endswith(" of charge, scope tenant-7")
    assert "crashed" not in name


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_how_far_it_is_and_a_pipe_does_not(shell: Shell) -> None:
    """The bar is on standard error, and goes when it is done."""
    environment = {**fill(shell), "TERM": "xterm"}
    ours, theirs = os.openpty()
    with subprocess.Popen(SWEEP, env=environment, stdout=subprocess.PIPE, stderr=theirs) as sweeper:
        os.close(theirs)
        shown = b""
        while chunk := read(ours):
            shown += chunk
        out, _ = sweeper.communicate(timeout=100)
    os.close(ours)
    assert b" removed" in shown
    assert out.decode().splitlines()[-1] == f"removed {DEAD} finished and 1 abandoned"
    piped = subprocess.run(SWEEP, env=environment, capture_output=True, check=True)
    assert piped.stderr == b""


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that the other end is closed
        return b""
