"""A real Celery worker that is killed in the middle of a task, or ends before it could record one.

The ledger is the provider's, outside of the library: requests of one key are one effect to it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from idemcore import Engine
from idemcore.identity import SINGLE_TENANT, Identity, identify
from idemcore.record import Record, State
from tests.conditions import until

pytest.importorskip("celery")
pytest.importorskip("sqlalchemy")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals"),
]

ROOT = Path(__file__).parent.parent.parent
REDIS_URL = os.environ.get("IDEMCORE_TEST_REDIS_URL", "")
PATIENCE = 120.0
IDENTITY = identify(SINGLE_TENANT, "refunds.pay", "r-1")


@dataclass
class Desk:
    """A queue, a database and a ledger; workers are started on them."""

    folder: Path
    broker: str
    transport: dict[str, Any]
    kills: str

    def __post_init__(self) -> None:
        self.ledger = self.folder / "ledger"
        self.database = f"sqlite:///{self.folder / 'records.db'}"
        self.environment = {
            **os.environ,
            "CELERY_TEST_BROKER": self.broker,
            "CELERY_TEST_TRANSPORT": json.dumps(self.transport),
            "CELERY_TEST_QUEUE": f"refunds-{uuid.uuid4()}",
            "CELERY_TEST_DATABASE": self.database,
            "CELERY_TEST_LEDGER": str(self.ledger),
            "CELERY_TEST_KILLS": self.kills,
        }

    def send(self, task: str = "pay_refund", *arguments: str | int) -> None:
        program = f"from tests.function.celery_worker import {task}; {task}.delay(*{arguments or ('r-1', 500)})"
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=self.environment, check=True, timeout=60)

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "celery", "--app", "tests.function.celery_worker", "worker"]
        log = (self.folder / "worker.log").open("ab")
        worker = subprocess.Popen(
            [*command, "--concurrency", "1", "--loglevel", "INFO", "--without-gossip", "--without-mingle"],
            cwd=ROOT, env=self.environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            yield worker
        finally:
            worker.terminate()
            try:
                worker.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait(timeout=30)
            log.close()

    def queued(self) -> list[Path]:
        return list((self.folder / "queue").iterdir())

    def asked(self) -> list[str]:
        return self.ledger.read_text().split() if self.ledger.exists() else []

    def wait_for(self, state: State, identity: Identity = IDENTITY) -> Record:
        with Engine(self.database, observers=[]) as idem:
            if until(lambda: getattr(idem.get(identity), "state", None) is state, patience=PATIENCE):
                record = idem.get(identity)
                assert isinstance(record, Record)
                return record
        raise AssertionError((self.folder / "worker.log").read_text())


@pytest.fixture
def filesystem(tmp_path: Path) -> Desk:
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    queue = str(tmp_path / "queue")
    transport = {
        "data_folder_in": queue, "data_folder_out": queue, "control_folder": str(tmp_path / "control"),
    }  # fmt: skip
    return Desk(tmp_path, "filesystem://", transport, kills="child")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Desk]:
    client_library = pytest.importorskip("redis")
    if not REDIS_URL:
        pytest.skip("set IDEMCORE_TEST_REDIS_URL to run a worker on Redis")
    prefix = f"idemcore-celery-{uuid.uuid4()}:"
    yield Desk(tmp_path, REDIS_URL, {"global_keyprefix": prefix, "visibility_timeout": 1}, kills="worker")
    client = client_library.Redis.from_url(REDIS_URL)
    for key in client.scan_iter(f"{prefix}*"):
        client.delete(key)
    client.close()


def the_effect_happened_once(desk: Desk, record: Record) -> None:
    asked = desk.asked()
    assert record.attempt == 2
    assert len(asked) == 2  # the worker died with the first one's effect unrecorded
    assert len(set(asked)) == 1  # which the provider knows by its key
    assert record.answer is not None
    assert json.loads(record.answer.body) == "500 refunded"


def test_a_task_whose_process_is_killed_is_delivered_again_and_taken_over(filesystem: Desk) -> None:
    """LEA-01: refused while the dead one's lease stands, tried again for as long, then taken over."""
    with Engine(filesystem.database) as idem:
        idem.create_schema()
    filesystem.send()
    with filesystem.worker():
        record = filesystem.wait_for(State.COMPLETED)
    the_effect_happened_once(filesystem, record)


def test_a_worker_that_is_killed_whole_leaves_its_task_to_the_next_one(redis: Desk) -> None:
    """LEA-01: nobody is left to say so; the broker delivers again after its visibility timeout."""
    with Engine(redis.database) as idem:
        idem.create_schema()
    redis.send()
    with redis.worker() as first:
        first.wait(timeout=PATIENCE)
    assert first.returncode == -signal.SIGKILL
    with redis.worker():
        record = redis.wait_for(State.COMPLETED)
    the_effect_happened_once(redis, record)


def test_a_worker_that_ends_in_good_order_records_what_waits(filesystem: Desk) -> None:
    """OUT-04: the pool's processes skip Python's own exit, so the engine is closed by Celery's signal."""
    filesystem.kills = filesystem.environment["CELERY_TEST_KILLS"] = "nobody"
    with Engine(filesystem.database) as idem:
        idem.create_schema()
    filesystem.send()
    with filesystem.worker():
        assert until(lambda: len(filesystem.asked()) == 1, patience=PATIENCE)
        filesystem.wait_for(State.CLAIMED)
    filesystem.wait_for(State.COMPLETED)
    assert len(filesystem.asked()) == 1


def test_under_block_a_verdict_of_not_done_sends_nothing(filesystem: Desk) -> None:
    """LEA-01: the killed run's redelivery fails as OutcomeUnknown, and its message is gone with that. What is
    to be sent again is what the task wrote down.
    """
    payout = identify(SINGLE_TENANT, "payouts.send", "p-1")
    undecided = filesystem.folder / "undecided"
    with Engine(filesystem.database) as idem:
        idem.create_schema()
        filesystem.send("pay_out", "p-1", 500)
        with filesystem.worker():
            assert until(lambda: undecided.exists() and undecided.read_text().endswith("\n"), patience=PATIENCE)
        assert json.loads(undecided.read_text()) == ["p-1", 500, "OutcomeUnknown"]
        assert filesystem.queued() == []
        killed = idem.get(payout)
        assert isinstance(killed, Record)
        assert idem.resolve(payout, killed.token, "not_done")
        assert filesystem.wait_for(State.RELEASED, payout).attempt == 1
        with filesystem.worker():
            filesystem.send("pay_out", "p-1", 500)
            assert filesystem.wait_for(State.COMPLETED, payout).attempt == 2
    assert filesystem.asked() == ["p-1", "p-1"]


def test_under_block_what_tells_celery_to_try_again_leaves_it_unknown(filesystem: Desk) -> None:
    """Celery's Retry, Ignore and Reject are exceptions like any other, and the try that Retry asked for is
    refused: but where the task said first that nothing was done.
    """
    states = dict.fromkeys(("retried", "ignored", "rejected"), State.UNKNOWN) | {"released": State.COMPLETED}
    with Engine(filesystem.database) as idem:
        idem.create_schema()
    with filesystem.worker():
        for how in states:
            filesystem.send("postpone", how)
        for how, state in states.items():
            filesystem.wait_for(state, identify(SINGLE_TENANT, "payouts.postpone", how))
        log = filesystem.folder / "worker.log"
        assert until(lambda: "OutcomeUnknown" in log.read_text(), patience=PATIENCE)
