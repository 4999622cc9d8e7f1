"""Orders and their records in one transaction, on SQLite and PostgreSQL: both or neither, once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from idemcore import (
    AlreadyCommitted,
    Attempt,
    ConfigurationError,
    Engine,
    InProgress,
    LeaseLost,
    NotReplayable,
    Replay,
    StoreUnavailable,
)
from idemcore.record import Record
from idemcore.stores.base import FAILED_AFTER_COMMIT
from idemcore.stores.sql import SQLAlchemyStore
from idemcore.testing import off
from tests.conditions import until
from tests.stores.shop_case import DATABASES, Shop


@pytest.fixture(params=DATABASES)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(request.param, tmp_path)
    yield shop
    shop.close()


@pytest.fixture
def session(shop: Shop) -> Iterator[Session]:
    with Session(shop.engine) as session:
        yield session


PLACES: list[Callable[[Shop], Session | scoped_session[Session] | Connection]] = [
    lambda shop: Session(shop.engine),
    lambda shop: scoped_session(sessionmaker(shop.engine)),
    lambda shop: shop.engine.connect(),
]


@pytest.mark.parametrize("open_place", PLACES, ids=["session", "scoped session", "connection"])
def test_an_order_and_its_record_are_committed_together(
    shop: Shop, open_place: Callable[[Shop], Session]
) -> None:
    """A retry between commit and answer gets NotReplayable once the lease is over, then the answer."""
    place = open_place(shop)
    attempt = shop.attempt()
    attempt.join(place)
    shop.buy(place)
    place.commit()
    assert (shop.bought(), shop.state()) == (1, "committed")
    with pytest.raises(InProgress):
        shop.begin()
    attempt.complete(b"order 1")
    place.close()
    replay = shop.begin()
    assert isinstance(replay, Replay)
    assert replay.outcome.body == b"order 1"


def test_an_order_that_is_rolled_back_runs_again(shop: Shop) -> None:
    """The mark is gone with the order; the retry makes the only one."""
    with pytest.raises(IntegrityError):
        order_twice(shop)
    assert (shop.bought(), shop.state()) == (0, "released")
    with shop.attempt() as attempt, Session(shop.engine) as session:
        attempt.join(session)
        shop.buy(session)
        session.commit()
        attempt.complete(b"")
    assert (attempt.number, shop.bought()) == (2, 1)


def order_twice(shop: Shop) -> None:
    with shop.attempt() as attempt, Session(shop.engine) as session, session.begin():
        attempt.join(session)
        shop.buy(session)
        session.execute(shop.orders.insert(), [{"id": 7, "reference": "k"}, {"id": 7, "reference": "k"}])


def test_a_session_that_a_failed_handler_forgot_locks_nothing_for_long(shop: Shop) -> None:
    """Nobody closed it: collected, it is rolled back, as it would be without join, and the retry runs."""

    def forgetful(attempt: Attempt) -> None:
        session = Session(shop.engine)
        attempt.join(session)
        shop.buy(session)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), shop.attempt() as attempt:
        forgetful(attempt)
    gc.collect()
    shop.attempt("other").complete(b"")  # SQLite has one write lock for all
    assert until(lambda: shop.state() == "released")
    assert (shop.attempt().number, shop.bought()) == (2, 0)


def test_a_handler_that_fails_after_its_commit_never_runs_again(shop: Shop, session: Session) -> None:
    """OUT-02: the order is there, so a retry is told so."""
    attempt = shop.attempt()
    attempt.join(session)
    shop.buy(session)
    session.commit()
    attempt.fail(ZeroDivisionError())
    with pytest.raises(NotReplayable, match=FAILED_AFTER_COMMIT):
        shop.begin()
    assert shop.bought() == 1


def buy_and_join(shop: Shop, attempt: Attempt) -> None:
    with Session(shop.engine) as session, session.begin():
        shop.buy(session)
        attempt.join(session)


def test_a_verdict_heeds_the_transaction_that_it_had_to_wait_for(shop: Shop, session: Session) -> None:
    """LEA-03: an operator sees an abandoned claim whose run is about to commit: "not done" is refused once the
    order is there, and "done" ends it for good.
    """
    attempt = shop.attempt()
    shop.leases_over()
    seen = shop.idem.get(attempt.identity)
    assert isinstance(seen, Record)
    attempt.join(session)
    shop.buy(session)
    with ThreadPoolExecutor(1) as operator:
        verdict = operator.submit(shop.idem.resolve, attempt.identity, seen.token, "not_done")
        session.commit()
        with pytest.raises(AlreadyCommitted):
            verdict.result()
    assert (shop.bought(), shop.state()) == (1, "committed")
    assert shop.idem.resolve(attempt.identity, seen.token, "done")
    attempt.complete(b"too late")
    with pytest.raises(NotReplayable, match="resolved_as_done"):
        shop.begin()
    assert shop.bought() == 1


def test_a_late_owner_loses_its_rows(shop: Shop) -> None:
    """LEA-03: another run has taken over; the late order is never committed, the winner's is."""
    late = shop.attempt()
    shop.leases_over()
    winner = shop.attempt()
    with pytest.raises(LeaseLost):
        buy_and_join(shop, late)
    assert shop.bought() == 0
    buy_and_join(shop, winner)
    winner.complete(b"order 1")
    answer = late.complete(b"order of the late one")
    assert isinstance(answer, Replay)
    assert answer.outcome.body == b"order 1"
    assert shop.bought() == 1


def test_a_transaction_that_is_run_again_after_its_commit_is_stopped(shop: Shop) -> None:
    """OUT-03: the commit arrived and its acknowledgement did not, so the program tries again."""
    with shop.attempt() as attempt:
        buy_and_join(shop, attempt)
        with pytest.raises(AlreadyCommitted):
            buy_and_join(shop, attempt)
        attempt.complete(b"order 1")
    assert shop.bought() == 1


def test_completing_before_the_commit_is_refused_and_then_succeeds(shop: Shop, session: Session) -> None:
    """It would wait for its own transaction; after the commit nothing is lost."""
    attempt = shop.attempt()
    attempt.join(session)
    shop.buy(session)
    with pytest.raises(ConfigurationError, match="commit it first"):
        attempt.complete(b"")
    session.commit()
    attempt.complete(b"order 1")
    assert isinstance(shop.begin(), Replay)


def complete_inside(shop: Shop) -> None:
    with Session(shop.engine) as session, session.begin(), shop.attempt() as attempt:
        attempt.join(session)
        shop.buy(session)
        attempt.complete(b"")


def test_the_wrong_nesting_frees_the_key_after_the_rollback(shop: Shop) -> None:
    """The attempt ends inside of the transaction: the thread of the engine releases it when that has ended."""
    with pytest.raises(ConfigurationError, match="commit it first"):
        complete_inside(shop)
    assert until(lambda: shop.state() == "released")
    assert shop.bought() == 0


def test_a_savepoint_is_refused(shop: Shop, session: Session) -> None:
    """The mark would be lost with it while the rows around it stay; before it and after it there is none."""
    attempt = shop.attempt()
    with session.begin_nested(), pytest.raises(ConfigurationError, match="savepoint"):
        attempt.join(session)
    with shop.engine.begin() as connection:
        connection.begin_nested()
        with pytest.raises(ConfigurationError, match="savepoint"):
            attempt.join(connection)
    with Session(shop.engine) as other, other.begin():
        attempt.join(other)
        with other.begin_nested() as inner:
            shop.buy(other)
            inner.rollback()
    attempt.complete(b"")


@pytest.mark.parametrize("mode", ["create_savepoint", "conditional_savepoint"])
def test_a_transaction_around_a_whole_test_is_told_from_a_commit(shop: Shop, mode: Any) -> None:
    """Its commits commit nothing: refused with the reason, nothing waits, and the key is free after it. With
    protection off the same code runs in it.
    """
    engine = create_engine(shop.url)
    if engine.dialect.name == "sqlite":  # SQLAlchemy's recipe: the driver begins no transaction for a savepoint
        event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))

    def order(attempt: Attempt, session: Session) -> None:
        attempt.join(session)
        shop.buy(session)
        session.commit()
        attempt.complete(b"")

    def whole_test(begin: Callable[[], Attempt]) -> None:
        with engine.connect() as connection, connection.begin() as around:
            attempt = begin()  # before the test has written, or SQLite would have no room for the claim
            with attempt, Session(connection, join_transaction_mode=mode) as session:
                try:
                    order(attempt, session)
                finally:
                    around.rollback()

    with pytest.raises(ConfigurationError, match="savepoint" if mode == "create_savepoint" else "commit it"):
        whole_test(shop.attempt)
    assert (shop.bought(), shop.state()) == (0, "released")
    with off(shop.idem):
        whole_test(shop.attempt)
    assert shop.bought() == 0
    engine.dispose()


def test_a_connection_that_commits_each_statement_is_refused(shop: Shop) -> None:
    """The mark would stand before the rows do, or without them."""
    attempt = shop.attempt()
    engine = create_engine(shop.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(ConfigurationError, match="AUTOCOMMIT"):
        attempt.join(connection)
    with shop.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(ConfigurationError, match="AUTOCOMMIT"):
            attempt.join(connection)
    engine.dispose()
    assert shop.state() == "claimed"
    attempt.release()


@pytest.mark.parametrize("has_table", [False, True])
def test_another_database_is_refused(shop: Shop, tmp_path: Path, has_table: bool) -> None:
    """It is no lost claim: nobody has taken it. Whether there is such a table makes no difference."""
    attempt = shop.attempt()
    if shop.engine.dialect.name == "sqlite":
        engine = create_engine(f"sqlite:///{tmp_path / 'another.db'}")
    else:
        engine = create_engine(shop.url, connect_args={"options": f"-c search_path={shop.orders.name}"})
        with shop.engine.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {shop.orders.name}"))
    if has_table:
        shop.metadata.create_all(engine)
    with Session(engine) as session, pytest.raises(ConfigurationError, match="database"):
        attempt.join(session)
    engine.dispose()
    if shop.engine.dialect.name != "sqlite":
        with shop.engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {shop.orders.name} CASCADE"))
    attempt.release()


@pytest.mark.parametrize("place", ["session", None, sessionmaker()])
def test_what_is_no_session_is_named(shop: Shop, place: object) -> None:
    """A factory in place of a session, most likely."""
    attempt = shop.attempt()
    with pytest.raises(ConfigurationError, match=f"not {type(place).__name__}"):
        attempt.join(place)
    attempt.release()


def test_a_session_with_several_databases_finds_the_table(shop: Shop) -> None:
    """Where the table is bound; where it is not, the message says what to give."""
    attempt = shop.attempt()
    with (
        Session(binds={shop.orders: shop.engine}) as session,
        pytest.raises(ConfigurationError, match="several"),
    ):
        attempt.join(session)
    with Session(binds={shop.orders: shop.engine, shop.records: shop.engine}) as session, session.begin():
        attempt.join(session)
    assert shop.state() == "committed"
    attempt.complete(b"")


def test_tenants_by_schema_do_not_move_the_table(shop: Shop) -> None:
    """A translated schema is for the caller's tables; the store's own stays where it is."""
    attempt = shop.attempt()
    engine = shop.engine.execution_options(schema_translate_map={None: "tenant_7"})
    with Session(engine) as session, session.begin():
        attempt.join(session)
    assert shop.state() == "committed"
    attempt.complete(b"")


def test_the_same_transaction_may_be_joined_twice(shop: Shop, session: Session) -> None:
    """Two layers of a program may both see to it; another transaction beside it is refused."""
    attempt = shop.attempt()
    attempt.join(session)
    attempt.join(session.connection())
    with Session(shop.engine) as other, pytest.raises(ConfigurationError, match="another transaction"):
        attempt.join(other)
    session.commit()
    attempt.complete(b"")


def test_one_connection_is_enough(shop: Shop) -> None:
    """SQL-06: the store and the session share a pool of one; nothing needs a second one meanwhile."""
    engine = create_engine(shop.url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    idem = Engine(SQLAlchemyStore(engine, table=shop.records), observers=[])
    begun = idem.begin(scope="t", operation="order", key="k", fingerprint="v1.test:1")
    assert isinstance(begun, Attempt)
    with begun as attempt, Session(engine) as session:
        attempt.join(session)
        shop.buy(session)
        session.commit()
        attempt.complete(b"")
    assert shop.bought() == 1
    idem.close()
    engine.dispose()


def test_threads_that_race_for_orders_make_each_one_once(shop: Shop) -> None:
    """RAC-01, RAC-03, LEA-03: leases end and transactions roll back at random; the orders are counted."""
    keys = [f"k{number}" for number in range(8)]
    barrier, done = threading.Barrier(6), threading.Event()

    def work(number: int) -> None:
        random = Random(number)
        barrier.wait()
        for key in random.sample(keys, len(keys)):
            while not try_order(shop, key, random):
                pass

    def end_leases() -> None:
        while not done.wait(0.01):
            try:
                shop.leases_over()
            except Exception:  # noqa: S112 - SQLite was busy
                continue

    with ThreadPoolExecutor(7) as pool:
        aging = pool.submit(end_leases)
        for worker in [pool.submit(work, number) for number in range(6)]:
            worker.result()
        done.set()
        aging.result()
    assert {key: shop.bought(key) for key in keys} == dict.fromkeys(keys, 1)


def try_order(shop: Shop, key: str, random: Random) -> bool:
    """Whether the order is there, for all that its caller can tell."""
    try:
        begun = shop.begin(key)
        if isinstance(begun, Replay):
            return True
        with begun as attempt, Session(shop.engine) as session:
            if random.random() < 0.5:
                attempt.join(session)
                shop.buy(session, key)
            else:
                shop.buy(session, key)
                attempt.join(session)
            if random.random() < 0.3:
                raise ZeroDivisionError
            session.commit()
            if random.random() < 0.3:
                raise ZeroDivisionError
            attempt.complete(b"")
            return True
    except NotReplayable as error:
        return error.reason == FAILED_AFTER_COMMIT
    except (InProgress, LeaseLost, StoreUnavailable, ZeroDivisionError):
        return False


class TestSQLite:
    """What is SQLite's own."""

    @pytest.fixture
    def shop(self, tmp_path: Path) -> Iterator[Shop]:
        shop = Shop("sqlite", tmp_path)
        # The recipe of SQLAlchemy's documentation for transactions that include reads.
        event.listen(shop.engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
        event.listen(shop.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        shop.engine.dispose()
        yield shop
        shop.close()

    def test_transactions_that_the_program_begins_itself_are_joined(self, shop: Shop, session: Session) -> None:
        """The driver is in autocommit there, and the transaction is one all the same."""
        attempt = shop.attempt()
        attempt.join(session)
        shop.buy(session)
        session.rollback()
        assert (shop.state(), shop.bought()) == ("claimed", 0)
        attempt.join(session)
        session.commit()
        attempt.complete(b"")

    def test_a_read_before_the_claim_is_no_lost_claim(self, shop: Shop, session: Session) -> None:
        """SQL-05: such a transaction can write no more; the message says how to begin it."""
        session.execute(shop.orders.select()).all()
        attempt = shop.attempt()
        with pytest.raises(StoreUnavailable, match="BEGIN IMMEDIATE"):
            attempt.join(session)
        session.rollback()
        attempt.join(session)
        session.commit()
        attempt.complete(b"")

    def test_a_file_that_others_keep_busy_is_said_to_be(self, shop: Shop) -> None:
        """The caller's own time limit counts; then the whole transaction may be run again."""
        attempt = shop.attempt()
        hasty = create_engine(shop.url, connect_args={"timeout": 0.01})
        with shop.engine.connect() as writer, Session(hasty) as session:
            writer.execute(shop.orders.insert().values(reference="other"))
            with pytest.raises(StoreUnavailable, match=r"locked for too long.*run again"):
                attempt.join(session)
        attempt.join(session)
        session.commit()
        session.close()
        hasty.dispose()
        attempt.complete(b"")
