"""MariaDB and MySQL: what their upserts, collations, time zones, locks and limits would spoil, and bad days."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest
from sqlalchemy import MetaData, create_engine, make_url
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

from idemcore import Attempt, Engine, Replay
from idemcore.errors import ConfigurationError, LeaseLost, StoreUnavailable
from idemcore.record import Answer, Record, State, Stored
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.stores import racers
from tests.stores.claims import ANSWER, A, B, claim
from tests.stores.mariadb_case import Table, connect, url

KEYS = [f"key-{number:03}" for number in range(60)]


@contextmanager
def locked(table: Table, key: str) -> Iterator[None]:
    """Somebody else's transaction has locked one row."""
    with closing(connect(table.url)) as holder:
        holder.begin()
        with holder.cursor() as cursor:
            where = "scope = 'tenant' AND operation = 'op' AND `key` = %s"
            cursor.execute(f"SELECT 1 FROM {table.name} WHERE {where} FOR UPDATE", (key,))
        yield
        holder.rollback()


def test_keys_compare_byte_for_byte(store: SQLAlchemyStore) -> None:
    """SQL-01: case, accents, spaces at the end and the last of 255 characters all count."""
    keys = ["Key-A", "key-a", "key-a ", "kéy-a", "ke\u0301y-a", "x" * 254 + "1", "x" * 254 + "2"]
    assert [store.reserve(claim(key)) for key in keys] == [None] * len(keys)
    assert sorted(found.identity.key for found in store.find(limit=10)) == sorted(keys)


def test_a_live_key_is_granted_once_though_sqlalchemy_counts_found_rows(table: Table) -> None:
    """The flag FOUND_ROWS, which SQLAlchemy sets, makes an upsert's count the same for both."""
    engine = create_engine(table.url)
    store = SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    assert store.reserve(claim()) is None
    seen = store.reserve(claim(token=B))
    assert isinstance(seen, Record)
    assert seen.token == A
    assert store.complete(claim(), ANSWER) == Stored()
    kept = store.reserve(claim())  # sent again with the same token, as after a lost acknowledgement
    assert isinstance(kept, Record)
    assert kept.answer == ANSWER
    engine.dispose()


def test_a_large_answer_comes_back_whole(store: SQLAlchemyStore) -> None:
    """SQL-06: plain BLOB ends at 64 kB, silently in some modes."""
    large = Answer("http", b"{}", bytes(range(256)) * 4_096)
    store.reserve(claim())
    assert store.complete(claim(), large) == Stored()
    kept = store.reserve(claim(token=B))
    assert isinstance(kept, Record)
    assert kept.answer == large


def test_the_primary_key_fits_the_smallest_limit_of_an_index() -> None:
    """SQL-07: 767 bytes, which old row formats have; ours are bytes, so a character is one."""
    kind: Any = mysql.dialect()
    made = str(CreateTable(idempotency_table(MetaData())).compile(dialect=kind))
    assert "scope VARBINARY(128)" in made
    assert "operation VARBINARY(255)" in made
    assert "`key` VARBINARY(255)" in made
    assert 128 + 255 + 255 <= 767


def test_unrelated_keys_do_not_get_in_each_others_way(store: SQLAlchemyStore) -> None:
    """SQL-05: twenty threads, each with keys of its own: no deadlock reaches a caller."""

    def work(name: int) -> None:
        for number in range(20):
            mine = claim(f"{name}-{number}")
            assert store.reserve(mine) is None
            assert store.complete(mine, ANSWER) == Stored()

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(work, range(20)))


def test_a_replay_waits_for_no_lock(store: SQLAlchemyStore, table: Table) -> None:
    """RAC-02: a look without a lock comes first."""
    store.reserve(claim())
    store.complete(claim(), ANSWER)
    with locked(table, "k-1"):
        kept = store.reserve(claim(token=B))
    assert isinstance(kept, Record)
    assert kept.state is State.COMPLETED


def test_a_renewal_waits_for_no_lock(store: SQLAlchemyStore, table: Table) -> None:
    """Renewals behind it would wait too, and lose their leases."""
    store.reserve(claim())
    with locked(table, "k-1"), pytest.raises(StoreUnavailable, match="locked"):
        store.renew(claim())
    assert store.renew(claim()) == pytest.approx(30, abs=1)


def leave_dead(store: SQLAlchemyStore, table: Table, many: int) -> None:
    """Finished records past their retention."""
    for number in range(many):
        store.reserve(claim(f"dead-{number:04}"))
        store.complete(claim(f"dead-{number:04}"), ANSWER)
    table.age(None, 100_000)


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("many", [2, 10, 300, 1_001])
def test_a_sweep_passes_over_a_locked_row(
    store: SQLAlchemyStore, table: Table, many: int, isolation: Any
) -> None:
    """Dead or alive, in a table so small that the server would read it whole, and in more than one list."""
    leave_dead(store, table, many)
    store.reserve(claim("live"))
    no_wait = {"init_command": "SET innodb_lock_wait_timeout = 1"}
    engine = create_engine(table.url, isolation_level=isolation, connect_args=no_wait)
    sweeper = SQLAlchemyStore(engine, table=table.table)
    with locked(table, "dead-0001"), locked(table, "live"):
        assert sweeper.sweep(2_000).finished == many - 1
    assert [found.identity.key for found in store.find(limit=10)] == ["dead-0001", "live"]
    assert sweeper.sweep(2_000).finished == 1
    engine.dispose()


@pytest.mark.parametrize("dead", [0, 5])
def test_a_sweep_passes_over_a_claim_that_is_joined(store: SQLAlchemyStore, table: Table, dead: int) -> None:
    """It stands alone in the table, or behind what has to go."""
    leave_dead(store, table, dead)
    engine = create_engine(table.url, connect_args={"init_command": "SET innodb_lock_wait_timeout = 1"})
    with (
        Engine(SQLAlchemyStore(engine, table=table.table), observers=()) as idem,
        engine.connect() as connection,
    ):
        attempt = idem.begin(scope="t", operation="order", key="k", fingerprint="v1.x:1")
        assert isinstance(attempt, Attempt)
        attempt.join(connection)
        assert idem.sweep().finished == dead
        connection.commit()
        attempt.complete(b"")
    engine.dispose()


def test_a_sweep_names_what_it_removed(store: SQLAlchemyStore, table: Table) -> None:
    """Bytes that are no text, too; whoever claimed a row anew keeps it."""
    for key in ("a", "b", "c", "d"):
        store.reserve(claim(key))
    store.complete(claim("a"), ANSWER)
    table.execute("UPDATE {} SET `key` = %s WHERE `key` = 'b'", b"\xff'\\")  # by no client of ours
    table.age(None, 100_000)
    store.reserve(claim("c", token=b"C" * 16))
    with locked(table, "d"):
        swept = store.sweep(10)
    assert (swept.finished, swept.abandoned) == (1, 1)
    assert [found.identity.key for found in store.find(limit=10)] == ["c", "d"]
    assert store.sweep(10).abandoned == 1
    assert store.sweep(10) == (0, 0, ())
    store.check()


def test_a_sweep_that_cannot_tell_what_it_removed_removes_nothing(
    store: SQLAlchemyStore, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server's clock was put back between pick and removal."""
    for key in ("a", "b"):
        store.reserve(claim(key))
    table.age(claim("a").identity, 100_000)
    real = store._db.backend.rows

    def pick_one_too_many(connection: Any, sql: str, parameters: dict[str, Any]) -> Any:
        rows = real(connection, sql, parameters)
        return [*rows, ("claimed", b"tenant", b"op", b"b")] if sql == store._sql.sweep else rows

    monkeypatch.setattr(store._db.backend, "rows", pick_one_too_many)
    with pytest.raises(StoreUnavailable, match="sweep again"):
        store.sweep(10)
    monkeypatch.undo()
    assert [found.identity.key for found in store.find(limit=10)] == ["a", "b"]


@pytest.mark.parametrize("zone", ["+00:00", "-07:00", "+05:30"])
def test_the_session_s_time_zone_moves_no_lease(table: Table, zone: str) -> None:
    """An engine of the caller's keeps its zone, and the store's times do not depend on it."""
    engine = create_engine(table.url, connect_args={"init_command": f"SET time_zone = '{zone}'"})
    store = SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    assert store.reserve(claim()) is None
    other = table.open()
    seen = other.get(claim().identity)
    assert isinstance(seen, Record)
    assert seen.lease_left == pytest.approx(30, abs=5)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT @@session.time_zone").scalar_one() == zone
        assert connection.exec_driver_sql("SELECT @@session.autocommit").scalar_one() == 0
    other.close()
    engine.dispose()


def test_a_walk_finds_its_place_by_the_primary_key(store: SQLAlchemyStore, table: Table) -> None:
    """A page in the middle of many records reads the page alone."""
    for number in range(300):
        store.reserve(claim(f"{number:04}"))
    table.execute("ANALYZE TABLE {}")
    page = store.find(limit=10)
    parameters = {
        "only_scope": None,
        "only_operation": None,
        "only_state": None,
        "only_open": False,
        "at_most": 10,
        "after_scope": "tenant",
        "after_operation": "op",
        "after_key": "0150",
    }
    with store._db.link() as link:
        link.rows("FLUSH STATUS", {})
        assert len(link.rows(store._sql.find, parameters)) == 10
        read = dict(link.rows("SHOW SESSION STATUS LIKE 'Handler_read%%'", {}))
    assert sum(int(count) for count in read.values()) < 40
    assert [found.identity.key for found in page] == [f"{number:04}" for number in range(10)]


@pytest.mark.parametrize("before", racers.BEFORE)
def test_eight_processes_share_every_key_out_once(table: Table, store: SQLAlchemyStore, before: str) -> None:
    """RAC-01, RAC-03: keys behind a barrier, one grant for each, whatever stood there before."""
    racers.leave(store, KEYS, before, table.age)
    assert racers.race(table.url, table.name, KEYS) == ([], KEYS, {State.COMPLETED})


def test_four_processes_make_the_schema_at_once(table: Table) -> None:
    """DDL has no transactions here; a lock by name puts them in order."""
    racers.together(4, racers.make_schema, table.url, table.name)
    assert table.execute("SELECT count(*) FROM {}") == [(4,)]


def test_a_record_shares_the_fate_of_the_callers_transaction(table: Table) -> None:
    """Committed together, rolled back together; under repeatable read too."""
    engine = create_engine(table.url, isolation_level="REPEATABLE READ")
    store = SQLAlchemyStore(engine, table=table.table)
    idem = Engine(store)
    idem.create_schema()

    def begin() -> Attempt | Replay:
        return idem.begin(scope="t", operation="order", key="k", fingerprint="v1.x:1")

    first = begin()
    assert isinstance(first, Attempt)
    with Session(engine) as session:
        session.connection()
        first.join(session)
        session.rollback()
    assert table.execute("SELECT state FROM {}") == [("claimed",)]
    with Session(engine) as session:
        first.join(session)
        session.commit()
    assert table.execute("SELECT state FROM {}") == [("committed",)]
    first.complete(b"order 1")
    again = begin()
    assert isinstance(again, Replay)
    assert again.outcome.body == b"order 1"
    idem.close()
    engine.dispose()


def test_a_late_owner_s_rows_roll_back(table: Table) -> None:
    """Whoever has lost the claim cannot mark it."""
    store = table.open()
    idem = Engine(store)
    idem.create_schema()
    late = idem.begin(scope="t", operation="order", key="k", fingerprint="v1.x:1")
    assert isinstance(late, Attempt)
    table.age(None, 60)
    idem.begin(scope="t", operation="order", key="k", fingerprint="v1.x:1")
    engine = create_engine(table.url)
    with Session(engine) as session, pytest.raises(LeaseLost):
        late.join(session)
    engine.dispose()
    idem.close()


@pytest.mark.parametrize(
    ("change", "expected", "said"),
    [
        ({"database": "no_such_database_here"}, ConfigurationError, "no such database"),
        ({"username": "nobody_here", "password": "s3cret-word"}, ConfigurationError, "refused"),
        ({"port": 1}, StoreUnavailable, "reached"),
    ],
)
def test_what_the_url_got_wrong_is_named(
    table: Table, change: dict[str, Any], expected: type[Exception], said: str
) -> None:
    """DEG-01: neither the address nor the password stands in a message or its traceback."""
    store = SQLAlchemyStore(make_url(table.url).set(**change))
    with pytest.raises(expected, match=said) as caught:
        store.check()
    assert "s3cret-word" not in "".join(traceback.format_exception(caught.value))
    store.close()


def test_a_server_that_is_too_old_is_said_to_be_one(store: SQLAlchemyStore) -> None:
    """A server without SKIP LOCKED takes it for a mistake; trying again would not help."""
    with pytest.raises(ConfigurationError, match="1064"), store._db.link() as link:
        link.rows("SELECT 1 FROM nowhere FOR UPDATE HOP LOCKED", {})


def test_a_package_that_the_log_in_takes_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyMySQL has some ways to log in, such as MySQL's default without TLS, by packages that it leaves out."""

    def connect(**options: Any) -> None:
        raise RuntimeError("'cryptography' package is required for caching_sha2_password auth methods")

    store = SQLAlchemyStore(url())
    monkeypatch.setattr(pymysql, "connect", connect)
    with pytest.raises(ConfigurationError, match=r"'cryptography' package is required .* Install"):
        store.check()
    store.close()


def test_a_missing_table_says_what_to_run(table: Table) -> None:
    """At check, and at the first request."""
    store = table.open()
    for ask in (store.check, lambda: store.reserve(claim())):
        with pytest.raises(ConfigurationError, match="init-db"):
            ask()
    store.close()


def test_a_read_only_server_is_said_to_be_one(store: SQLAlchemyStore, table: Table) -> None:
    """DEG: a replica, or in the middle of a failover; what is kept is given back all the same."""
    store.reserve(claim("kept"))
    store.complete(claim("kept"), ANSWER)
    engine = create_engine(table.url, connect_args={"init_command": "SET SESSION TRANSACTION READ ONLY"})
    replica = SQLAlchemyStore(engine, table=table.table)
    kept = replica.reserve(claim("kept", token=B))
    assert isinstance(kept, Record)
    assert kept.answer == ANSWER
    with pytest.raises(StoreUnavailable, match="read-only"):
        replica.reserve(claim("new"))
    engine.dispose()


def test_durable_is_the_server_s_own_setting() -> None:
    """Said, and not passed over."""
    with pytest.raises(ConfigurationError, match="innodb_flush_log_at_trx_commit"):
        SQLAlchemyStore(url(), durable=True)


def test_an_idle_connection_that_was_hung_up_on_is_replaced(store: SQLAlchemyStore, table: Table) -> None:
    """After `wait_timeout`, or a restart; verbs that begin a transaction notice it at the BEGIN."""

    def hang_up() -> None:
        with store._db.link() as link:
            number = link.rows("SELECT CONNECTION_ID()", {})[0][0]
        table.execute(f"KILL {number} -- {{}}")

    store.reserve(claim())
    hang_up()
    assert store.reserve(claim("after")) is None
    hang_up()
    assert store.renew(claim()) == pytest.approx(30, abs=5)
    table.age(None, 31)
    hang_up()
    assert store.take_over(A, claim(token=B, attempt=2))
    hang_up()
    assert store.sweep(10) == (0, 0, ())
