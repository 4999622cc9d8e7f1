"""PostgreSQL: what a replay costs, whose clock decides, plans, lost acknowledgements, bad days."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text

from idemcore.errors import ConfigurationError, StoreUnavailable
from idemcore.record import Answer, Record, State, Stored, UnreadableRecord
from idemcore.stores.sql import SQLAlchemyStore, postgresql
from idemcore.stores.sql.rows import claim_parameters
from tests.interrupts import Interrupt, Steps
from tests.stores import racers
from tests.stores.claims import ANSWER, ONE, A, B, claim, completed
from tests.stores.postgres_case import Table, connect, url


def through(table: Table, options: str) -> SQLAlchemyStore:
    """A store over an engine whose sessions have these options."""
    engine = create_engine(url(), connect_args={"options": options}, pool_size=1)
    return SQLAlchemyStore(engine, table=table.table)


def dispose(store: SQLAlchemyStore) -> None:
    """Closes what `through` made."""
    store._db.source._engine.dispose()  # type: ignore[attr-defined] # it is a CallersEngine


@pytest.mark.parametrize("state", ["completed", "claimed"])
def test_a_replay_is_given_no_transaction_id(store: SQLAlchemyStore, table: Table, state: str) -> None:
    """RAC-02: reading writes nothing: no id, so no write-ahead log; and no row is locked."""
    completed(store) if state == "completed" else store.reserve(claim())
    before = table.execute("SELECT xmin::text, xmax::text, ctid::text FROM {}")
    assert before[0][1] == "0"
    with store._db.link() as link:
        link.rows("BEGIN", {})
        for _ in range(10):
            rows = link.rows(store._sql.reserve or "", claim_parameters(claim(token=B)))
            assert rows[0][0] is False
        assert link.rows("SELECT pg_current_xact_id_if_assigned()", {})[0][0] is None
        link.rows("ROLLBACK", {})
    assert table.execute("SELECT xmin::text, xmax::text, ctid::text FROM {}") == before


def test_reserve_is_one_statement(store: SQLAlchemyStore) -> None:
    """One round trip for a new claim, and one for a replay."""
    sent: list[str] = []
    rows = store._db.backend.rows

    def watch(connection: Any, sql: str, parameters: Any) -> Any:
        sent.append(sql)
        return rows(connection, sql, parameters)

    store._db.backend.rows = watch  # type: ignore[method-assign] # a look at the wire
    assert store.reserve(claim()) is None
    assert store.reserve(claim(token=B)) is not None
    assert sent == [store._sql.reserve] * 2


def test_a_race_lost_inside_the_statement_is_run_again(store: SQLAlchemyStore) -> None:
    """RAC-03: no rows is neither a grant nor an error; for ever no rows is try later."""
    rows = store._db.backend.rows
    empty = 3

    def lose(connection: Any, sql: str, parameters: Any) -> Any:
        nonlocal empty
        empty -= 1
        return rows(connection, sql, parameters) if empty < 0 else []

    store._db.backend.rows = lose  # type: ignore[method-assign] # what eight callers in one millisecond do
    assert store.reserve(claim()) is None
    assert empty == -1
    empty = 10**9
    with pytest.raises(StoreUnavailable):
        store.reserve(claim("k-2"))


def test_those_that_collide_again_and_again_wait_a_moment_by_chance(
    store: SQLAlchemyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL-05: in step with each other, twenty of them use their tries up and get nowhere."""
    pauses: list[float] = []
    monkeypatch.setattr(postgresql.time, "sleep", pauses.append)
    left = 6

    def collide(*_: object) -> list[Any]:
        nonlocal left
        left -= 1
        if left >= 0:
            raise psycopg.errors.SerializationFailure
        return []

    monkeypatch.setattr(store._db.backend._prepared, "rows", collide)  # type: ignore[attr-defined] # it is PostgreSQL
    assert store.get(ONE) is None
    assert len(set(pauses)) == 3
    assert all(0 <= pause <= 0.02 for pause in pauses)


def test_the_servers_clock_decides(store: SQLAlchemyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """LEA-01: an application host 45 seconds off steals no lease."""
    store.reserve(claim())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 45)
    record = store.reserve(claim(token=B))
    assert isinstance(record, Record)
    assert record.lease_stands
    assert not store.take_over(A, claim(token=B))
    with pytest.raises(ConfigurationError, match="clock"):
        SQLAlchemyStore(url(), clock=time.time)


def test_a_table_that_was_analyzed_while_tiny_is_still_searched_by_its_key(
    store: SQLAlchemyStore, table: Table
) -> None:
    """The plan that is kept for ever is not one that reads the whole table."""
    store.reserve(claim())
    table.execute("VACUUM ANALYZE {}")
    with store._db.link() as link:
        plan = "\n".join(
            row[0] for row in link.rows("EXPLAIN " + (store._sql.reserve or ""), claim_parameters(claim()))
        )
    assert f"Index Scan using {table.name}_pkey" in plan
    assert "Seq Scan" not in plan


def test_a_sweep_searches_by_expiry(store: SQLAlchemyStore, table: Table) -> None:
    """SWE-02: the last batch, which finds less than it may, does not walk over the live rows."""
    store.reserve(claim())
    table.execute("ANALYZE {}")
    with store._db.link() as link:
        plan = "\n".join(row[0] for row in link.rows("EXPLAIN " + store._sql.sweep, {"at_most": 10}))
    assert "Index Cond: (expires_at <=" in plan


def test_completing_leaves_the_index_of_expiry_alone(store: SQLAlchemyStore, table: Table) -> None:
    """Expiry is written at claim and normally stays: the update touches no index."""
    store.reserve(claim())
    before = table.execute("SELECT expires_at FROM {}")
    store.complete(claim(), ANSWER)
    assert table.execute("SELECT expires_at FROM {}") == before


def test_no_connection_is_held_while_work_is_done(table: Table) -> None:
    """SQL-03: a pool of one serves eight threads whose work overlaps."""
    engine = create_engine(url(), pool_size=1, max_overflow=0)
    store = SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    racers.overlap(store)
    dispose(store)


def test_an_engine_of_the_callers_stays_transactional(table: Table) -> None:
    """Its connections come back as they were, and closing the store closes none."""
    engine = create_engine(url(), pool_size=1)
    store = SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    completed(store)
    store.close()
    with engine.connect() as connection:
        connection.execute(text(f"DELETE FROM {table.name}"))  # noqa: S608 - our own name
        connection.rollback()
    assert store.reserve(claim(token=B)) is not None
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_connection_that_outlives_its_pool_is_closed(table: Table, driver: str) -> None:
    """One verb finds the server restarted and gives the idle connections up, while another is under way."""
    store = SQLAlchemyStore(url(driver), table=table.table)
    source = store._db.source
    for end in (source.refresh, source.close):
        connection, taken = source.take()
        end()
        source.give(taken)
        assert connection.closed
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in weakrefs' callbacks
def test_an_interrupt_leaves_no_connection_of_the_callers_in_autocommit(table: Table, driver: str) -> None:
    """A signal's exception at any step of a verb: else the caller's next transaction would commit by pieces."""
    engine = create_engine(url(driver), pool_size=50)
    store = SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    broken = 0
    for nth in range(1, 5000):
        with Steps(nth, ("/stores/sql/connections.py", "/stores/sql/sources.py")) as steps:
            try:
                store.reserve(claim(f"k{nth}"))
            except Interrupt:
                broken += 1
        if not steps.struck:
            break
        with engine.connect() as connection:
            driver_connection: Any = connection.connection.dbapi_connection
            assert driver_connection.autocommit is False
    assert broken > 30
    engine.dispose()


def cut_after(store: SQLAlchemyStore, verb: str) -> None:
    """The next statement is carried out, and its connection dies before the answer arrives."""
    original: Callable[..., Any] = getattr(store._db.backend, verb)
    cut = False

    def run(connection: Any, sql: str, parameters: Any) -> Any:
        nonlocal cut
        result = original(connection, sql, parameters)
        if cut:
            return result
        cut = True
        connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    setattr(store._db.backend, verb, run)


def test_a_lost_acknowledgement_of_reserve_is_recognised_as_ones_own(store: SQLAlchemyStore) -> None:
    """RAC-04: sent again, it finds its own claim: no rival, no second row, and no wait for the lease."""
    cut_after(store, "rows")
    record = store.reserve(claim())
    assert isinstance(record, Record)
    assert (record.state, record.token, record.attempt) == (State.CLAIMED, A, 1)


def test_lost_acknowledgements_of_the_other_verbs_are_found_done(store: SQLAlchemyStore, table: Table) -> None:
    """RAC-04: complete, take-over, release and renewal say what the first, unanswered try did."""
    store.reserve(claim())
    cut_after(store, "count")
    assert store.complete(claim(), ANSWER) == Stored()
    store.reserve(claim("k-2"))
    table.age(claim("k-2").identity, 31)
    cut_after(store, "count")
    second = claim("k-2", B, attempt=2)
    assert store.take_over(A, second)
    cut_after(store, "rows")
    assert store.renew(second) is not None
    for to in ("released", "unknown", "deleted"):
        made = claim(to)
        store.reserve(made)
        cut_after(store, "count")
        assert store.release(made, to, "why")  # type: ignore[arg-type] # one of the three


def test_a_restarted_server_costs_no_request(store: SQLAlchemyStore, table: Table) -> None:
    """DEG-01: idle connections that died are replaced, all of them, before anyone sees an error."""
    gates = [threading.Barrier(4) for _ in range(2)]

    def hold() -> None:
        with store._db.link() as link:
            link.rows("SELECT 1", {})
            gates[0].wait(timeout=60)
            gates[1].wait(timeout=60)

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    for gate in gates:
        gate.wait(timeout=60)
    for thread in threads:
        thread.join()
    pattern = f"%{table.name}%"
    with connect() as other:
        mine = other.execute("SELECT pg_backend_pid()").fetchone()
        killed = other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> ALL(%s) AND state = 'idle'"
            " AND (query = 'SELECT 1' OR query LIKE %s)",
            ([mine[0] if mine else 0, table.connection.info.backend_pid], pattern),
        ).fetchall()
    assert len(killed) >= 3
    for number in range(5):
        completed(store, f"k-{number}")


def test_a_server_that_is_not_there_is_try_later_without_a_password() -> None:
    """DEG-01: refused at once; the driver's error is the cause, the message shows no address."""
    store = SQLAlchemyStore("postgresql://user:secret@127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailable) as refused:
        store.reserve(claim())
    assert isinstance(refused.value.__cause__, psycopg.OperationalError)
    assert "secret" not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)
    assert "secret" not in repr(store)
    store.close()


def test_a_locked_row_is_waited_for_within_a_limit(store: SQLAlchemyStore, table: Table) -> None:
    """DEG-02: a transaction that keeps the record locked makes writers give up, and readers not even wait."""
    completed(store, "done")
    store.reserve(claim())
    impatient = through(table, "-c lock_timeout=50")
    with connect() as other, other.transaction():
        other.execute(f"SELECT 1 FROM {table.name} FOR UPDATE")  # noqa: S608 - our own name
        assert impatient.reserve(claim("done", B)) is not None
        assert impatient.get(ONE) is not None
        with pytest.raises(StoreUnavailable, match="locked") as refused:
            impatient.complete(claim(), ANSWER)
        assert isinstance(refused.value.__cause__, psycopg.errors.LockNotAvailable)
    assert impatient.complete(claim(), ANSWER) == Stored()
    dispose(impatient)


def test_a_statement_that_hangs_is_given_up(store: SQLAlchemyStore, table: Table) -> None:
    """DEG-02: the server stops it in time, and says so."""
    store.reserve(claim())
    impatient = through(table, "-c statement_timeout=50")
    with connect() as other, other.transaction():
        other.execute(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match="in time"):
            impatient.get(ONE)
    dispose(impatient)


def test_the_stores_own_sessions_have_limits(store: SQLAlchemyStore) -> None:
    """DEG-02: nobody waits for ever, by default."""
    with store._db.link() as link:
        limits = [link.rows(f"SHOW {name}", {})[0][0] for name in ("lock_timeout", "statement_timeout")]
    assert limits == ["5s", "15s"]


def test_an_operators_list_is_walked_by_its_index(store: SQLAlchemyStore) -> None:
    """No page sorts the table or begins at its start, so none meets the statement's time limit; no JIT."""
    nothing = {**dict.fromkeys(("only_scope", "only_operation", "only_state")), "only_open": False}
    page = {**nothing, **dict.fromkeys(("after_scope", "after_operation", "after_key"), "x"), "at_most": 1}
    with store._db.link() as link:
        plan = "\n".join(row[0] for row in link.rows("EXPLAIN " + store._sql.find, page))
    assert "Index Cond: (ROW(" in plan
    assert "Sort" not in plan
    assert "JIT" not in plan


def test_a_long_answer_is_compressed_fast_where_the_server_can(store: SQLAlchemyStore, table: Table) -> None:
    """By the store's own connections, and without a word in the table's definition."""
    able = table.execute(
        "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    )
    if able != [(True,)]:
        pytest.skip("this server has no lz4")
    store.reserve(claim())
    assert store.complete(claim(), Answer("http", b"{}", b'{"line": 1}' * 1_000)) == Stored()
    assert table.execute("SELECT pg_column_compression(body) FROM {}") == [("lz4",)]


def test_a_sweep_walks_the_index_whatever_the_statistics_say(store: SQLAlchemyStore) -> None:
    """No batch gathers and sorts all that is past its retention."""
    with store._db.link() as link:
        plan = "\n".join(row[0] for row in link.rows("EXPLAIN " + store._sql.sweep, {"at_most": 1000}))
    assert "Sort" not in plan
    assert "Tid Scan" in plan


def test_durable_waits_for_the_disk_whatever_the_default(table: Table) -> None:
    """A database set to asynchronous commit is not trusted with money."""
    for durable, setting in ((True, "on"), (False, "off")):
        relaxed = url() + ("&" if "?" in url() else "?") + "options=-c%20synchronous_commit%3Doff"
        store = SQLAlchemyStore(relaxed, table=table.table, durable=durable)
        with store._db.link() as link:
            assert link.rows("SHOW synchronous_commit", {})[0][0] == setting
        store.close()


def test_a_read_only_server_is_try_later(store: SQLAlchemyStore, table: Table) -> None:
    """DEG-01: a replica, or a failover under way: records can be looked at, claims are refused."""
    completed(store)
    replica = through(table, "-c default_transaction_read_only=on")
    with pytest.raises(StoreUnavailable, match="read-only"):
        replica.check()
    with pytest.raises(StoreUnavailable, match="read-only"):
        replica.complete(claim("new"), ANSWER)
    assert replica.get(ONE) is not None
    dispose(replica)


def test_a_missing_table_names_the_way_out(table: Table) -> None:
    """It is a mistake in the set-up, not an outage."""
    store = SQLAlchemyStore(url(), table=table.table)
    for verb in (store.check, lambda: store.reserve(claim()), lambda: store.sweep(1)):
        with pytest.raises(ConfigurationError, match=r"create_schema\(\)"):
            verb()
    store.close()


def test_another_table_of_that_name_is_refused(table: Table) -> None:
    """Columns are missing, or the primary key is: said at set-up."""
    for ddl in ("CREATE TABLE {} (id integer)", "CREATE TABLE {} AS TABLE kept WITH NO DATA"):
        if "kept" in ddl:
            table.execute("DROP TABLE {}")
            store = SQLAlchemyStore(url(), table=table.table)
            store.create_schema()
            store.close()
            table.execute("CREATE TEMP TABLE kept AS TABLE {}")
            table.execute("DROP TABLE {}")
        table.execute(ddl)
        store = SQLAlchemyStore(url(), table=table.table)
        with pytest.raises(ConfigurationError, match=table.name):
            store.check()
        store.close()


def test_damaged_answers_are_left_alone_past_retention(store: SQLAlchemyStore, table: Table) -> None:
    """SEC-02, row 1 of the machine: the statement itself does not take them for forgettable."""
    for column, value in (("body", None), ("meta", None), ("kind", "pickled")):
        completed(store, column)
        identity = claim(column).identity
        table.write(identity, column, value)
        table.write(identity, "expires_at", 1)
        assert isinstance(store.reserve(claim(column, B)), UnreadableRecord)
        assert isinstance(store.get(identity), UnreadableRecord)


def test_durations_beyond_any_calendar_are_kept_for_good(store: SQLAlchemyStore) -> None:
    """A retention of timedelta.max is for ever, not an overflow."""
    for_ever = claim(retention=86_399_999_999_999.0, max_hold=86_399_999_999_999.0)
    assert store.reserve(for_ever) is None
    assert store.renew(for_ever) is not None
    assert store.complete(for_ever, ANSWER) == Stored()


def test_a_refused_row_is_in_no_traceback(store: SQLAlchemyStore, table: Table) -> None:
    """PostgreSQL quotes the whole row of a constraint that failed; the log gets its SQLSTATE alone."""
    table.execute("ALTER TABLE {} ADD CHECK (key <> 'secret-key')")
    secret, other = claim("secret-key"), claim("other-key")  # a traceback quotes the lines below
    with pytest.raises(ConfigurationError, match="23514") as refused:
        store.reserve(secret)
    assert "secret-key" not in "".join(traceback.format_exception(refused.value))
    table.execute(
        f"CREATE FUNCTION {table.name}_tell() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION USING MESSAGE = NEW.key; END $$"
    )
    each = f"FOR EACH ROW EXECUTE FUNCTION {table.name}_tell()"
    table.execute(f"CREATE TRIGGER tell BEFORE INSERT ON {{}} {each}")
    try:
        with pytest.raises(StoreUnavailable, match="P0001") as told:
            store.reserve(other)
        assert "other-key" not in "".join(traceback.format_exception(told.value))
    finally:
        table.execute(f"DROP FUNCTION {table.name}_tell CASCADE")
