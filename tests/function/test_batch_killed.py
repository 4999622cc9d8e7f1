"""A batch in four processes, SIGKILL at random three times: the provider's own ledger gives the verdict.

Between an effect and its record nothing outside can be made atomic. A provider that deduplicates closes the
gap; without one, rerun may repeat what was in hand at a kill, and block repeats nothing and leaves it open.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from idemcore import Engine
from idemcore.record import State
from tests.function import batch_worker

PROCESSES, THREADS, KILLS = 4, 2, 3
IN_HAND = KILLS * THREADS
"""How many items can have been under way at the kills, at the most."""
PATIENCE = 300.0

sizes = pytest.mark.parametrize(
    "count",
    [pytest.param(400, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.nightly)],
)


class Batch:
    """Four processes on one database, three of them killed and started again; then one run to the end."""

    def __init__(self, folder: Path, provider: str, count: int) -> None:
        self.folder, self.count = folder, count
        self.database = folder / "batch.db"
        (folder / "keys").mkdir()
        self.command = [
            *(sys.executable, batch_worker.__file__, str(self.database), provider, str(folder), str(count))
        ]
        running = [self.start() for _ in range(PROCESSES)]
        for kill_at in sorted(random.sample(range(count // 10, count * 9 // 10), KILLS)):
            self.wait_for(kill_at, running)
            victim = running.pop(random.randrange(PROCESSES))
            victim.send_signal(signal.SIGKILL)
            victim.communicate()
            running.append(self.start())
        self.reports = [self.report_of(process) for process in running]
        self.last: dict[str, Any] = self.report_of(self.start())

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)

    def wait_for(self, requests: int, running: list[subprocess.Popen[str]]) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(self.requests()) < requests and any(process.poll() is None for process in running):
            assert time.monotonic() < deadline, "the batch does not get on"
            time.sleep(0.005)

    def report_of(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        told, _ = process.communicate(timeout=PATIENCE)
        report: dict[str, Any] = json.loads(told)
        return report

    def requests(self) -> list[int]:
        ledger = self.folder / "requests"
        return [int(line) for line in ledger.read_text().split()] if ledger.exists() else []


@sizes
def test_with_a_provider_that_deduplicates_there_is_exactly_one_effect_an_item(
    tmp_path: Path, count: int
) -> None:
    """LEA-01: a takeover sends the same child key, so what was in hand at a kill is not done twice."""
    batch = Batch(tmp_path, "deduplicates", count)
    assert len(list((tmp_path / "keys").iterdir())) == count
    assert set(batch.requests()) == set(range(count))
    assert (batch.last["replayed"], batch.last["troubles"]) == (count, [])


@sizes
def test_without_one_rerun_repeats_at_most_what_was_in_hand(tmp_path: Path, count: int) -> None:
    """LEA-01: every item is done, and at most one a killed slot is done once more."""
    batch = Batch(tmp_path, "forgets", count)
    asked = Counter(batch.requests())
    assert set(asked) == set(range(count))
    assert asked.total() - count <= IN_HAND
    assert max(asked.values()) <= 1 + KILLS
    assert (batch.last["replayed"], batch.last["troubles"]) == (count, [])


@sizes
def test_without_one_block_repeats_nothing_and_leaves_it_unknown(tmp_path: Path, count: int) -> None:
    """OUT-03: no item is asked for twice; what was in hand waits for an operator, and is counted."""
    batch = Batch(tmp_path, "block", count)
    asked = Counter(batch.requests())
    assert set(asked.values()) == {1}
    unknown = batch.last["unknown"]
    assert unknown <= IN_HAND
    assert batch.last["replayed"] == count - unknown
    with Engine(f"sqlite:///{batch.database}") as idem:
        left_open = [int(found.identity.key) for found in idem.store.find(state=State.CLAIMED, limit=count)]
    assert len(left_open) == unknown
    assert set(asked) | set(left_open) == set(range(count))
