"""Many callers, the same keys, at the same moment: one run each, whatever they run on.

The effects are counted in a file that the library does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from idemcore import Engine

WORKER = Path(__file__).with_name("racing_worker.py")
KEYS = 200


@pytest.mark.parametrize(
    ("processes", "threads"), [(8, 1), (1, 20)], ids=["8 processes", "20 threads in one process"]
)
def test_200_keys_run_once_each_on_one_sqlite_file(tmp_path: Path, processes: int, threads: int) -> None:
    """RAC-01, RAC-03, SQL-02: one effect a key; everyone else replays or is told that it is in progress."""
    database, ledger = tmp_path / "records.db", tmp_path / "ledger"
    with Engine(f"sqlite:///{database}") as idem:
        idem.create_schema()
    command = [sys.executable, str(WORKER), str(database), str(ledger), str(KEYS), str(threads)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:  # all are up: off they go
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    came_to: Counter[str] = Counter()
    for worker in workers:
        out, _ = worker.communicate(timeout=300)
        came_to.update(json.loads(out))
    assert set(came_to) <= {"ran", "replayed", "InProgress"}
    assert came_to["ran"] == KEYS
    assert came_to.total() == KEYS * processes * threads
    assert sorted(ledger.read_text().split()) == sorted(f"k{number}" for number in range(KEYS))
