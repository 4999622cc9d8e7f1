"""The example jobs are run, each more than once, as their readers will."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # each run starts an interpreter

JOBS = Path(__file__).parent.parent.parent / "examples" / "jobs"


def run(job: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(JOBS / job), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_job_is_run_here() -> None:
    """A new example needs a test below."""
    assert {path.name for path in JOBS.glob("*.py")} == {
        "nightly_payouts.py",
        "close_month.py",
        "consumer.py",
        "celery_refunds.py",
    }


def test_nightly_payouts_go_on_where_they_were(tmp_path: Path) -> None:
    """A second run replays; what the bank left open stays open, and the exit code says so."""
    payouts = tmp_path / "payouts.csv"
    lines = ["id,account,amount", *(f"p-{n},DE{n},{n}.50" for n in range(1, 21))]
    payouts.write_text("\n".join(lines) + "\n")

    def night() -> tuple[int, dict[str, Any]]:
        done = run("nightly_payouts.py", payouts, tmp_path / "payouts.db")
        return done.returncode, json.loads(done.stdout)

    code, first = night()
    assert (code, first["done"], first["troubles"]) == (0, 20, [])
    payouts.write_text("\n".join([*lines, "p-21,does not answer,1", "p-22,DE22,1"]) + "\n")
    code, second = night()
    assert (code, second["done"], second["replayed"], second["unknown"]) == (1, 1, 20, 1)
    code, third = night()
    assert (code, third["done"], third["replayed"], third["unknown"]) == (1, 0, 21, 1)


def test_a_month_is_closed_once_however_often_it_is_typed(tmp_path: Path) -> None:
    """And another currency for it is refused."""
    database = tmp_path / "books.db"
    first, again, other = (run("close_month.py", "2024-01", database, *more) for more in ([], ["EUR"], ["USD"]))
    assert (first.returncode, first.stdout) == (0, "2024-01 closed in EUR \n")
    assert (again.returncode, "already" in again.stdout) == (0, True)
    assert (other.returncode, other.stderr) == (65, "2024-01 was closed in another currency.\n")


def test_a_consumer_ships_once_what_is_delivered_twice(tmp_path: Path) -> None:
    """One repeated message, one id for two orders, one message without an id."""
    done = run("consumer.py", tmp_path / "orders.db")
    assert (done.stderr, done.stdout) == ("", "2 shipped, 3 acknowledged, 2 set aside\n")


def test_a_celery_task_runs_once_over_its_deliveries(tmp_path: Path) -> None:
    """The task's own bound `self` is left out, and Celery calls the protected function."""
    pytest.importorskip("celery")
    done = run("celery_refunds.py", tmp_path / "refunds.db")
    assert done.stdout == "3 deliveries, 1 refund, 1 answer\n", done.stderr
