"""SIGKILL at every step and SIGSTOP past the lease, real processes on one SQLite file.

The verdict comes from a ledger file that the library does not know. Time passes by giving the second worker
a clock that is ahead, as the store's clock is what decides; nothing sleeps.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from idemcore import (
    Attempt,
    Engine,
    FingerprintMismatch,
    InProgress,
    OutcomeUnknown,
    Policy,
    Replay,
    fingerprint,
    identify,
)
from idemcore.events import Event, LateFinish
from idemcore.record import Record
from idemcore.stores.sql import SQLAlchemyStore

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs POSIX signals")

IDENTITY = identify("t", "charge", "k")
WORKER = Path(__file__).with_name("crashing_worker.py")


class World:
    """One database, one ledger, and workers on them."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "records.db"
        self.ledger = folder / "ledger"
        self.ahead = 0.0
        self.store = SQLAlchemyStore(f"sqlite:///{self.database}", clock=lambda: time.time() + self.ahead)
        self.store.create_schema()
        self.events: list[Event] = []
        self.idem = Engine(self.store, observers=[self.events.append])

    def start(self, point: str, policy: str = "rerun") -> subprocess.Popen[str]:
        command = [sys.executable, str(WORKER), str(self.database), str(self.ledger), point, policy]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def killed_at(self, point: str, policy: str = "rerun") -> None:
        with self.start(point, policy) as worker:
            worker.communicate(timeout=60)
        assert worker.returncode == -signal.SIGKILL

    def lease_over(self) -> None:
        self.ahead = 31.0

    def send(self, amount: int = 10, policy: Policy | None = None) -> str:
        """The same payment again, made here: what its caller gets."""
        begun = self.idem.begin(
            scope="t",
            operation="charge",
            key="k",
            fingerprint=fingerprint({"amount": amount}),
            policy=policy,
        )
        if isinstance(begun, Replay):
            return f"replay {begun.outcome.body.decode()}"
        assert isinstance(begun, Attempt)
        with begun as attempt, self.ledger.open("a") as ledger:
            ledger.write(f"charged {attempt.child_key('charge')}\n")
            attempt.complete(f"attempt {attempt.number}".encode())
        return f"ran attempt {attempt.number}"

    @property
    def charges(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def record(self) -> Record:
        record = self.idem.get(IDENTITY)
        assert isinstance(record, Record)
        return record


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.idem.close()
    world.store.close()


@pytest.mark.parametrize(
    ("point", "charged_before", "charged_in_all"),
    [("reserve", 0, 1), ("handler", 0, 1), ("effect", 1, 2)],
)
def test_killed_before_its_record_under_rerun(
    world: World, point: str, charged_before: int, charged_in_all: int
) -> None:
    """LEA-01: refused while the lease stands; then the same request runs as attempt 2, another never.

    Killed after the effect it is repeated, which is what rerun admits; both charges carry one child key,
    so a provider that deduplicates charges once.
    """
    world.killed_at(point)
    assert len(world.charges) == charged_before
    with pytest.raises(InProgress) as caught:
        world.send()
    assert 1 <= caught.value.retry_after <= 30
    world.lease_over()
    with pytest.raises(FingerprintMismatch):
        world.send(amount=10_000)
    assert world.send() == "ran attempt 2"
    assert world.send() == "replay attempt 2"
    assert len(world.charges) == charged_in_all
    assert len(set(world.charges)) == 1


@pytest.mark.parametrize(("point", "charged"), [("reserve", 0), ("handler", 0), ("effect", 1)])
def test_killed_before_its_record_under_block(world: World, point: str, charged: int) -> None:
    """Nothing runs again by itself, whatever the policy of the one who asks; an operator settles it."""
    world.killed_at(point, "block")
    with pytest.raises(InProgress):
        world.send()
    world.lease_over()
    for policy in (Policy(on_abandoned="block"), Policy()):
        with pytest.raises(OutcomeUnknown):
            world.send(policy=policy)
    assert len(world.charges) == charged
    token = world.record().token
    if charged:
        assert world.idem.resolve(IDENTITY, token, "done")
        assert world.record().state == "tombstone"
    else:
        assert world.idem.resolve(IDENTITY, token, "not_done")
        assert world.send() == "ran attempt 2"
    assert len(world.charges) == 1


@pytest.mark.parametrize("policy", ["rerun", "block"])
def test_killed_after_its_record_is_written(world: World, policy: str) -> None:
    """The acknowledgement never arrived, the outcome is there: the retry gets it at once."""
    world.killed_at("complete", policy)
    assert world.send() == "replay attempt 1"
    assert len(world.charges) == 1


def test_a_worker_that_sleeps_past_its_lease_cannot_overwrite(world: World) -> None:
    """LEA-03: SIGSTOP, takeover, SIGCONT: its caller is given the winner's answer, the record stands."""
    with world.start("stop") as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "stopping\n"
        os.kill(sleeper.pid, signal.SIGSTOP)
        with pytest.raises(InProgress):
            world.send()
        world.lease_over()
        assert world.send() == "ran attempt 2"
        os.kill(sleeper.pid, signal.SIGCONT)
        out, _ = sleeper.communicate("wake up\n", timeout=60)
    assert out == "given attempt 2\n"
    assert world.send() == "replay attempt 2"
    assert len(set(world.charges)) == 1


def test_a_worker_that_wakes_while_the_other_still_runs(world: World) -> None:
    """LEA-03: the late one records nothing and keeps its own answer; the one that holds the claim wins."""
    with world.start("stop") as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == "stopping\n"
        world.lease_over()
        begun = world.idem.begin(
            scope="t", operation="charge", key="k", fingerprint=fingerprint({"amount": 10})
        )
        assert isinstance(begun, Attempt)
        out, _ = sleeper.communicate("wake up\n", timeout=60)
        assert out == "ran attempt 1\n"
        begun.complete(b"attempt 2")
    assert world.send() == "replay attempt 2"
    assert [event for event in world.events if isinstance(event, LateFinish)] == []
