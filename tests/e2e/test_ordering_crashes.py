"""SIGKILL around the commit of an order and its record, real processes: the orders table is the ledger."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from idemcore import InProgress, NotReplayable, OutcomeUnknown, Policy, Replay
from tests.conditions import until
from tests.stores.shop_case import DATABASES, LEASE, Shop

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")

WORKER = Path(__file__).with_name("ordering_worker.py")


@pytest.fixture(params=DATABASES)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(request.param, tmp_path)
    yield shop
    shop.close()


def killed_at(shop: Shop, point: str) -> None:
    command = [sys.executable, str(WORKER), shop.url, shop.orders.name, shop.records.name, point]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL


def lease_over(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        connection.execute(update(shop.records).values(lease_until=shop.records.c.lease_until - LEASE))


def order(shop: Shop) -> int:
    """Makes the order here; returns which attempt that was."""
    with shop.attempt() as attempt, Session(shop.engine) as session:
        shop.buy(session)
        attempt.join(session)
        session.commit()
        attempt.complete(b"order 1")
        return attempt.number


def test_killed_between_the_commit_and_the_record(shop: Shop) -> None:
    """OUT-01, LEA-01: the order is there once for good: in progress, then not replayable, never made again."""
    killed_at(shop, "committed")
    assert (shop.bought(), shop.state()) == (1, "committed")
    with pytest.raises(InProgress):
        shop.begin()
    lease_over(shop)
    for policy in (Policy(), Policy(on_abandoned="block")):
        with pytest.raises(NotReplayable, match="before it recorded its answer"):
            shop.begin(policy=policy)
    assert shop.bought() == 1


def test_killed_before_the_commit(shop: Shop) -> None:
    """LEA-01: neither the order nor the mark is there, so the retry makes the only order."""
    killed_at(shop, "joined")
    assert until(lambda: shop.state() == "claimed")
    assert shop.bought() == 0
    lease_over(shop)
    with pytest.raises(OutcomeUnknown):
        shop.begin(policy=Policy(on_abandoned="block"))
    assert order(shop) == 2
    assert shop.bought() == 1


def test_killed_once_its_record_is_written(shop: Shop) -> None:
    """OUT-01: the retry gets the answer of the process that is gone."""
    killed_at(shop, "completed")
    replay = shop.begin()
    assert isinstance(replay, Replay)
    assert (replay.outcome.body, shop.bought()) == (b"order 1", 1)
