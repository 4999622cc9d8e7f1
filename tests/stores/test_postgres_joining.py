"""What joining is on PostgreSQL alone: snapshots, row locks, and who waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from idemcore import ConfigurationError, InProgress, NotReplayable, Policy, StoreUnavailable
from idemcore.record import Claim
from tests.stores.shop_case import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop("postgresql", tmp_path)
    yield shop
    shop.close()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_snapshot_from_before_the_claim_is_no_lost_claim(shop: Shop, level: str) -> None:
    """It does not see the claim at all; a transaction that begins after it does."""
    with Session(shop.engine.execution_options(isolation_level=level)) as session:
        session.execute(select(shop.orders)).all()
        attempt = shop.attempt()
        with pytest.raises(ConfigurationError, match="snapshot"):
            attempt.join(session)
        session.rollback()
        attempt.join(session)
        shop.buy(session)
        session.commit()
    attempt.complete(b"")
    assert shop.bought() == 1


def test_a_claim_that_was_renewed_since_the_snapshot_is_joined_by_the_next_transaction(shop: Shop) -> None:
    """A collision that a new transaction does not have; the message says so, and shows no key."""
    attempt = shop.attempt("a-secret-key")
    with Session(shop.engine.execution_options(isolation_level="REPEATABLE READ")) as session:
        session.execute(select(shop.orders)).all()
        attempt.renew()
        with pytest.raises(StoreUnavailable, match="run again") as caught:
            attempt.join(session)
        assert "a-secret-key" not in f"{caught.value}{caught.value.__cause__}"
        session.rollback()
        attempt.join(session)
        session.commit()
    attempt.complete(b"")


def test_another_kind_of_database_is_refused(shop: Shop) -> None:
    """Nothing is sent to it."""
    attempt, other = shop.attempt(), create_engine("sqlite://")
    with other.connect() as connection, pytest.raises(ConfigurationError, match="on sqlite, the records"):
        attempt.join(connection)
    other.dispose()
    attempt.release()


def test_a_renewal_waits_for_no_lock(shop: Shop) -> None:
    """LEA-05: whoever has locked a row, an operator say, holds up nobody's renewal but that row's own."""
    attempts = [shop.attempt("locked"), shop.attempt("other")]
    locked, other = claims(attempts)
    with shop.engine.begin() as connection:
        connection.execute(select(shop.records).where(shop.records.c.key == "locked").with_for_update())
        with pytest.raises(StoreUnavailable, match="has locked the record"):
            shop.store.renew(locked)
        assert shop.store.renew(other) is not None
    assert shop.store.renew(locked) is not None


def claims(attempts: list[Any]) -> list[Claim]:
    return [attempt._claim for attempt in attempts]


def test_a_retry_is_told_of_the_open_transaction_at_once(shop: Shop) -> None:
    """LEA-01: the lease ends while the transaction is open; nobody waits for it, nothing runs twice."""
    attempt = shop.attempt()
    shop.leases_over()
    with Session(shop.engine) as session:
        attempt.join(session)
        shop.buy(session)
        with pytest.raises(InProgress) as caught:  # in this thread: it would wait for itself
            shop.begin()
        assert caught.value.retry_after == 1.0
        session.commit()
    with pytest.raises(NotReplayable, match="before it recorded its answer"):
        shop.begin()
    attempt.complete(b"order 1")
    assert shop.bought() == 1


def test_a_retry_that_may_wait_takes_over_after_a_rollback(shop: Shop) -> None:
    """It asks again as for any run in progress, and holds no connection meanwhile."""
    attempt = shop.attempt()
    shop.leases_over()
    with Session(shop.engine) as session:
        attempt.join(session)
        shop.idem._waiting_room._sleep = lambda _: session.rollback()
        again = shop.attempt(policy=Policy(wait=timedelta(seconds=5)))
    assert again.number == 2
    again.complete(b"order 1")
