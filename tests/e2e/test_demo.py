"""The payments demo plays, judges, and leaves nothing behind; whatever happens to it."""

from __future__ import annotations

import importlib
import json
import os
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from idemcore import Engine, identify
from idemcore.record import Record
from tests.conditions import PATIENCE, until

DEMO = Path(__file__).resolve().parents[2] / "examples" / "payments"
SCENES = [
    "lost answer",
    "late arrival",
    "repeated by a proxy",
    "simultaneous sends",
    "another amount",
    "spelled differently",
    "two tenants",
    "a 500 first",
    "declined first",
    "killed after the charge",
    "the same, blocked",
    "a worker wakes late",
    "killed after the commit",
    "a batch killed at half",
    "library switched off",
]
QUICK = ("--only", "lost answer")


class Demo:
    """Runs the demo's programs; every process that comes of it carries a mark in its environment."""

    def __init__(self, place: Path) -> None:
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        self.page = place / "report.html"
        self.mark = f"DEMO_TEST={uuid.uuid4()}"

    def environment(self, **more: str) -> dict[str, str]:
        name, _, value = self.mark.partition("=")
        return {**os.environ, name: value, "TMPDIR": str(self.temporary), **more}

    def command(self, *arguments: str, program: str = "demo.py") -> list[str]:
        page = ("--report", str(self.page)) if program == "demo.py" else ()
        return [sys.executable, str(DEMO / program), *page, *arguments]

    def run(
        self, *arguments: str, program: str = "demo.py", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments, program=program),
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
        )

    def alive(self) -> list[int]:
        """Ids of the processes that carry the mark and run still."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                marked = self.mark.encode() in (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if marked:
                found.append(int(process.name))
        return found


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    for process in demo.alive():
        os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "kept"


@pytest.fixture(scope="module")
def played(kept: Path) -> dict[str, Any]:
    demo = Demo(kept.parent)
    run = demo.run("--json", "--keep", str(kept))
    document: dict[str, Any] = json.loads(run.stdout or "{}")
    return {**document, "exit": run.returncode, "stderr": run.stderr, "alive": demo.alive()}


class TestWholePlay:
    """Every scene, once."""

    def test_every_scene_comes_out_right_and_the_ledger_is_exact(self, played: dict[str, Any]) -> None:
        """OUT-01, RAC-01, LEA-01, LEA-03, KEY-01, KEY-05: the card network's own ledger says so."""
        wrong = {scene["name"]: scene["wrong"] for scene in played["scenes"] if not scene["ok"]}
        assert (wrong, played["ledger"]["differences"]) == ({}, [])
        assert [scene["name"] for scene in played["scenes"]] == SCENES
        assert played["ledger"]["charges"] == played["ledger"]["must_be"] == 1013
        assert (played["exit"], played["ok"], played["stderr"]) == (0, True, "")

    def test_the_same_script_without_the_library_charges_twice_and_more(self, played: dict[str, Any]) -> None:
        """What the everyday scenes would cost is counted from a ledger too."""
        bare = next(scene for scene in played["scenes"] if scene["name"] == "library switched off")
        assert "25 duplicates" in bare["network_charged"]

    def test_nothing_outlives_it(self, played: dict[str, Any]) -> None:
        """No worker, no network and no batch is left behind, killed and stopped ones included."""
        assert played["alive"] == []

    @pytest.mark.parametrize("key", ["killed-1", "late-worker-1"])
    def test_a_takeover_is_the_second_attempt(self, played: dict[str, Any], kept: Path, key: str) -> None:
        """LEA-01: after SIGKILL in the handler the same request runs again as attempt 2."""
        record = Engine(f"sqlite:///{kept / 'crashing' / 'payments.db'}").get(identify("acme", "http", key))
        assert isinstance(record, Record)
        assert record.attempt == 2

    def test_the_report_is_one_page_that_loads_nothing(self, played: dict[str, Any]) -> None:
        """It can be sent to somebody: every scene is in it, and no address."""
        page = Path(played["report"]).read_text(encoding="utf-8")
        assert all(f"{scene['name']} <" in page for scene in played["scenes"])
        assert re.findall(r'(?:src|href)="(?!#)[^"]*"|url\(|@import|<script', page) == []

    def test_the_report_is_well_formed(self, played: dict[str, Any]) -> None:
        """Every row of a time line lies within its scene."""
        page = Path(played["report"]).read_text(encoding="utf-8")
        places = [float(left) for left in re.findall(r"left:([-\d.]+)%", page)]
        assert len(places) > 50
        assert all(0 <= left <= 100 for left in places)


def test_without_the_library_the_same_check_fails(demo: Demo) -> None:
    """The check can fail: a duplicate charge is found, named, and the exit status tells."""
    run = demo.run("--off", "--only", "lost answer", "--only", "a 500 first")
    assert run.returncode == 1
    assert "acme lost answer €49.90: charged twice, must be once" in run.stdout
    assert "acme a 500 first €750.00: charged once, must be never" in run.stdout
    assert "NOT what it must be" in run.stdout


def test_elsewhere_than_on_a_terminal_each_scene_is_one_line(demo: Demo) -> None:
    """Lines can be read in a log; and nothing is left in the temporary directory."""
    run = demo.run(*QUICK)
    assert run.returncode == 0, run.stdout + run.stderr
    first, ledger, report = run.stdout.splitlines()
    assert first.startswith("ok      lost answer: sent €49.90")
    assert first.endswith("came back nothing, then 201 replayed; the network charged 1 × €49.90")
    assert ledger.startswith("ledger: 1 charged, 1 must be there: exactly those")
    assert report == f"report: {demo.page}"
    assert list(demo.temporary.iterdir()) == []
    assert demo.alive() == []


def test_on_a_terminal_it_shows_a_table(demo: Demo) -> None:
    """A person watches the scenes come in."""
    ours, theirs = pty.openpty()
    shown = subprocess.Popen(
        demo.command(*QUICK), stdin=theirs, stdout=theirs, stderr=theirs, env=demo.environment(TERM="xterm")
    )
    os.close(theirs)
    output = b""
    while chunk := read_terminal(ours):
        output += chunk
    os.close(ours)
    assert shown.wait(timeout=PATIENCE) == 0, output
    text = output.decode()
    assert "━" in text
    assert "lost answer" in text
    assert "exactly those" in text


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says EIO once the other side is closed
        return b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_every_process_and_removes_every_file(demo: Demo, number: signal.Signals) -> None:
    """Ctrl-C in the middle leaves neither workers nor directories."""
    playing = subprocess.Popen(demo.command(), stdout=subprocess.PIPE, env=demo.environment())
    assert playing.stdout is not None
    with playing.stdout:
        assert playing.stdout.readline()  # the first scene is over, the second one plays
        assert len(demo.alive()) > 5
        playing.send_signal(number)
        assert playing.wait(timeout=PATIENCE) == 128 + number
    assert until(lambda: demo.alive() == [])
    assert list(demo.temporary.iterdir()) == []


def test_its_processes_end_by_themselves_when_it_is_killed(demo: Demo) -> None:
    """Nobody cleans up after SIGKILL, so each child watches for it."""
    playing = subprocess.Popen(demo.command(), stdout=subprocess.PIPE, env=demo.environment())
    assert playing.stdout is not None
    with playing.stdout:
        assert playing.stdout.readline()
        assert len(demo.alive()) > 5
        playing.kill()
        playing.wait()
    assert until(lambda: demo.alive() == [])


def test_a_taken_port_is_said_in_one_line(demo: Demo) -> None:
    """A stale server on the port is the usual reason, so the message says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = demo.run("--port", str(port), program="serve.py")
    assert run.returncode == 2
    assert run.stderr.splitlines() == [
        f"serve: port {port} is taken by another process: stop it (an earlier server still running?)"
        " or choose another with --port"
    ]
    assert demo.alive() == []


def test_an_earlier_ledger_is_not_counted_again(demo: Demo) -> None:
    """A directory that was used before is refused, in one line."""
    demo.page.write_text("an earlier run")
    run = demo.run(*QUICK, "--keep", str(demo.page.parent))
    assert run.returncode == 2
    assert run.stderr.splitlines() == [
        f"demo: {demo.page.parent} is not empty, and an earlier ledger would be counted: name a new directory"
    ]


def test_an_app_that_does_not_come_up_is_said_in_one_line(demo: Demo, tmp_path: Path) -> None:
    """The reason comes from the app's own last words."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "httpx.py").write_text("raise ImportError('this httpx is broken')")
    run = demo.run(*QUICK, PYTHONPATH=str(broken))
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert "the payments app did not come up" in run.stderr
    assert "this httpx is broken" in run.stderr
    assert demo.alive() == []
    assert list(demo.temporary.iterdir()) == []


class TestLedgerCheck:
    """Exactly the expected charges, nothing else."""

    @pytest.fixture
    def ledger(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
        monkeypatch.syspath_prepend(str(DEMO))
        yield importlib.import_module("ledger")
        del sys.modules["ledger"]

    @pytest.mark.parametrize(
        ("there", "said"),
        [
            ([], "acme order €10.00: charged never, must be once"),
            ([1000, 1000], "acme order €10.00: charged twice, must be once"),
            ([1000, 999], "acme order €9.99: charged once, must be never"),
        ],
        ids=["missing", "duplicate", "other amount"],
    )
    def test_what_is_wrong_is_named(
        self, ledger: ModuleType, tmp_path: Path, there: list[int], said: str
    ) -> None:
        """A missing, a double and an unexpected charge are three different sentences."""
        file = tmp_path / "ledger.jsonl"
        line = '{{"merchant": "acme", "reference": "order", "amount": {}}}\n'
        file.write_text("".join(line.format(amount) for amount in there))
        expected = Counter([ledger.Charge("acme", "order", 1000)])
        assert ledger.differences(ledger.charges(file), expected) == [said]

    @pytest.mark.parametrize("text", ['{"merchant"', "no JSON\n"], ids=["half a line", "no JSON"])
    def test_a_damaged_ledger_is_no_exact_ledger(self, ledger: ModuleType, tmp_path: Path, text: str) -> None:
        """What cannot be read is not skipped."""
        file = tmp_path / "ledger.jsonl"
        file.write_text(text)
        with pytest.raises(ValueError, match=r"ledger\.jsonl"):
            ledger.charges(file)

    def test_a_charge_without_a_payment_is_named(self, ledger: ModuleType, tmp_path: Path) -> None:
        """The app's own books must agree with the network's."""
        file, database = tmp_path / "ledger.jsonl", tmp_path / "payments.db"
        file.write_text('{"merchant": "acme", "id": "ch_1"}\n')
        books = sqlite3.connect(database)
        with books:
            books.execute("CREATE TABLE payments (charge_id)")
            books.execute("INSERT INTO payments VALUES ('ch_2')")
        books.close()
        assert ledger.unbooked(file, database, ["acme"]) == [
            "charge ch_1: 1 in the ledger, 0 in the payments table",
            "charge ch_2: 0 in the ledger, 1 in the payments table",
        ]
