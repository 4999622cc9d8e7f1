"""PostgreSQL behind PgBouncer in transaction mode: nothing is missed in a session, and nothing left there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import URL, Engine, create_engine

from idemcore.record import Record, Stored
from idemcore.stores.sql import SQLAlchemyStore
from idemcore.testing.contract import JoiningContract, StoreContract
from tests.stores import racers
from tests.stores.claims import ANSWER, claim
from tests.stores.postgres_case import OnPostgres, Table, url
from tests.stores.private_pgbouncer import SERVER, private_pgbouncer
from tests.stores.sql_case import CallersConnections, OnCallersEngine

pytestmark = pytest.mark.skipif(SERVER is None, reason="pgbouncer is not installed")

SESSIONS = 3


@pytest.fixture(scope="module")
def pooler() -> Iterator[URL]:
    """A database whose every transaction is in the next of three sessions."""
    with private_pgbouncer(url(), sessions=SESSIONS) as pooler:
        yield pooler


@pytest.fixture(scope="module")
def roomy_pooler() -> Iterator[URL]:
    """With more sessions than any test has open transactions."""
    with private_pgbouncer(url(), sessions=30) as pooler:
        yield pooler


class Pooled(OnPostgres):
    """Mix in before a contract class: the store goes through the pooler, the test past it."""

    @pytest.fixture(autouse=True)
    def through(self, pooler: URL) -> None:
        text = pooler.set(drivername=f"postgresql+{self.driver}").render_as_string(hide_password=False)
        self.table.url = text


class TestBehindAPooler(Pooled, StoreContract):
    """By URL."""


class TestBehindAPoolerThroughPsycopg2(Pooled, StoreContract):
    """By URL, with the other driver."""

    driver = "psycopg2"


class TestBehindAPoolerThroughAnEngineOfTheCallers(OnCallersEngine, Pooled, StoreContract):
    """Whose author has not told the driver to prepare nothing."""

    def make_engine(self, url: str) -> Engine:
        return create_engine(url)


class TestJoiningBehindAPooler(CallersConnections, Pooled, JoiningContract):
    """A transaction stays in one session; the store's look from outside needs another."""

    @pytest.fixture
    def pooler(self, roomy_pooler: URL) -> URL:
        return roomy_pooler


def through(pooler: URL, driver: str = "psycopg") -> str:
    return pooler.set(drivername=f"postgresql+{driver}").render_as_string(hide_password=False)


def settings_of_every_session(pooler: URL, *names: str) -> set[tuple[str, ...]]:
    """As another program finds them."""
    asked = ", ".join(f"current_setting('{name}')" for name in names)
    plain = pooler.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True, prepare_threshold=None) as connection:
        return {connection.execute(f"SELECT {asked}").fetchone() or () for _ in range(2 * SESSIONS)}


@pytest.mark.parametrize("kind", ["psycopg", "psycopg2", "engine"])
def test_threads_share_the_sessions_and_none_misses_a_statement(pooler: URL, table: Table, kind: str) -> None:
    """A statement that was prepared in one session is not there in the next; each verb is carried out."""
    engine = create_engine(through(pooler)) if kind == "engine" else None
    store = SQLAlchemyStore(engine or through(pooler, kind), table=table.table)
    store.create_schema()

    def work(name: int) -> None:
        for number in range(20):
            mine = claim(f"{name}-{number}")
            assert store.reserve(mine) is None
            assert store.renew(mine) == pytest.approx(30, abs=5)
            assert store.complete(mine, ANSWER) == Stored()
            kept = store.reserve(claim(f"{name}-{number}", token=b"B" * 16))
            assert isinstance(kept, Record)
            assert kept.answer == ANSWER

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert table.execute("SELECT count(*) FROM {} WHERE state = 'completed'") == [(160,)]
    store.close()
    if engine is not None:
        engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_no_setting_is_left_in_a_session_of_others(pooler: URL, table: Table, driver: str) -> None:
    """Time-outs of the store's would end other programs' statements."""
    names = ("statement_timeout", "lock_timeout", "enable_seqscan", "synchronous_commit")
    before = settings_of_every_session(pooler, *names)
    store = SQLAlchemyStore(through(pooler, driver), table=table.table, durable=True)
    store.create_schema()
    for number in range(2 * SESSIONS):
        store.reserve(claim(str(number)))
    assert settings_of_every_session(pooler, *names) == before
    store.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_each_statement_has_the_store_s_settings(pooler: URL, table: Table, driver: str) -> None:
    """`durable` above all: in whichever session it comes to be."""
    store = SQLAlchemyStore(through(pooler, driver), table=table.table, durable=True)
    table.execute("CREATE TABLE {} (setting text)")
    asked = "concat_ws(' ', " + ", ".join(
        f"current_setting('{name}')" for name in ("statement_timeout", "lock_timeout", "synchronous_commit")
    )
    with store._db.link() as link:
        for _ in range(2 * SESSIONS):
            assert link.rows(f"SELECT {asked})", {}) == [("15s 5s on",)]
            assert link.count(f"INSERT INTO {table.name} SELECT {asked})", {}) == 1
    assert table.execute("SELECT DISTINCT setting FROM {}") == [("15s 5s on",)]
    store.close()


def test_past_a_pooler_a_session_is_set_up_and_statements_are_prepared(table: Table) -> None:
    """Without one in between nothing is taken for a pooler."""
    store = table.open()
    with store._db.link() as link:
        assert link.prepares
        assert link.rows("SHOW statement_timeout", {}) == [("15s",)]
    store.close()


def test_four_processes_make_the_schema_at_once(pooler: URL, table: Table) -> None:
    """The lock is the transaction's, so it goes with it and not with the session."""
    racers.together(4, racers.make_schema, through(pooler), table.name)
    assert table.execute("SELECT count(*) FROM {}") == [(4,)]
