# ruff: noqa: S608 - the names in the statements are our own
"""The stores that the benchmarks compare: each beside the bare statements of its driver, and beside its peers.

A store that is not here is one more function like these, and one more entry in `benchmarks/contest.py`.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import MetaData, make_url

from benchmarks.store_peers import Side, idemkit_in_memory, idemkit_on_postgresql, powertools_in_memory
from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record
from idemcore.stores.base import Store
from idemcore.stores.memory import MemoryStore
from idemcore.stores.sql import DEFAULT_NAME, SQLAlchemyStore, idempotency_table

POSTGRESQL = make_url(os.environ.get("IDEMCORE_TEST_POSTGRES_URL", "postgresql://postgres@127.0.0.1:5432/test"))
"""Where the PostgreSQL server is; tables of the benchmark's own are made in that database, and dropped."""

_numbers = itertools.count()

FINGERPRINT = "v1.0:" + 64 * "a"
ANSWER = Answer("http", b'{"status":"201 Created","headers":[["Content-Type","text/plain"]]}', 200 * b"x")
CREATE = (
    "CREATE TABLE {} (scope varchar(128), operation varchar(255), key varchar(255), state varchar(16) NOT NULL,"
    " fingerprint text NOT NULL, meta {}, body {}, PRIMARY KEY (scope, operation, key))"
)
INSERT = (
    "INSERT INTO {0} (scope, operation, key, state, fingerprint) VALUES ({1}, {1}, {1}, 'claimed', {1})"
    " ON CONFLICT DO NOTHING"
)
UPDATE = (
    "UPDATE {0} SET state = 'completed', meta = {1}, body = {1}"
    " WHERE scope = {1} AND operation = {1} AND key = {1}"
)
SELECT = "SELECT state, fingerprint, meta, body FROM {0} WHERE scope = {1} AND operation = {1} AND key = {1}"


@dataclass(frozen=True)
class Opened:
    """A backend at work: the sides, the bare one first, and the store that can be filled and swept."""

    sides: list[Side]
    store: Store
    fill: Callable[[int, int], None]
    """Adds so many finished records that are kept until then, in microseconds since the epoch."""
    sweeps: bool = True
    """Whether what is past its time is swept; or the server removes it by itself."""
    processor_time: Callable[[], int] | None = None
    """Nanoseconds of this process and of what serves it; None where nothing else does, or it cannot be seen."""
    again: Callable[[], Store] | None = None
    """Opens the same records in another process; None where there can be none."""


def open_sql(url: str, table: str, *, durable: bool = False) -> Store:
    """Top-level, so that another process can be told to call it."""
    return SQLAlchemyStore(url, table=idempotency_table(MetaData(), name=table), durable=durable)


def table_names() -> list[str]:
    """Of a table for each side, the bare one first, which nobody else has."""
    number = next(_numbers)
    return [f"bench_{side}_{os.getpid()}_{number}" for side in ("bare", "idemcore")]


def claim(key: str) -> Claim:
    return Claim(
        Identity("tenant", "charge", key), FINGERPRINT, os.urandom(16), 1, 30.0, 600.0, 86_400.0, False
    )


def fresh() -> str:
    return uuid.uuid4().hex


def ours(store: Store, name: str = "idemcore") -> Side:
    """The two verbs of a request, as the engine calls them."""
    kept = claim(fresh())
    assert store.reserve(kept) is None
    store.complete(kept, ANSWER)

    def new(calls: int) -> None:
        for _ in range(calls):
            mine = claim(fresh())
            assert store.reserve(mine) is None
            store.complete(mine, ANSWER)

    def replay(calls: int) -> None:
        for _ in range(calls):
            found = store.reserve(claim(kept.identity.key))
            assert isinstance(found, Record)
            assert found.answer == ANSWER

    return Side(name, new, replay)


def bare(
    name: str, execute: Callable[..., Any], table: str, place: str, spelled: Callable[[str], str] = str
) -> Side:
    """An insert, an update and a select by primary key, each a transaction; no fence, no lease, no clock.

    `execute` gives back a cursor; `place` stands for a value; `spelled` makes a statement the database's own.
    """
    insert, update, select = (spelled(text.format(table, place)) for text in (INSERT, UPDATE, SELECT))
    kept = fresh()

    def one(key: str) -> None:
        assert execute(insert, ("tenant", "charge", key, FINGERPRINT)).rowcount == 1
        assert execute(update, (ANSWER.meta, ANSWER.body, "tenant", "charge", key)).rowcount == 1

    one(kept)

    def new(calls: int) -> None:
        for _ in range(calls):
            one(fresh())

    def replay(calls: int) -> None:
        for _ in range(calls):
            os.urandom(16)  # what our side makes a claim of
            row = execute(select, ("tenant", "charge", kept)).fetchone()
            assert bytes(row[3]) == ANSWER.body

    return Side(name, new, replay)


@contextmanager
def memory(folder: Path) -> Iterator[Opened]:
    now = [0.0]
    store = MemoryStore(max_bytes=4 << 30)
    swept = MemoryStore(clock=lambda: now[0])

    def fill(rows: int, until: int) -> None:
        kept = until > time.time() * 1e6
        filled = store if kept else swept
        for _ in range(rows):
            mine = claim(fresh())
            filled.reserve(mine)
            filled.complete(mine, ANSWER)
        if not kept:
            now[0] += 1e6

    yield Opened([dict_and_lock(), ours(store), idemkit_in_memory(), powertools_in_memory()], swept, fill)


def dict_and_lock() -> Side:
    records: dict[str, Any] = {}
    lock = threading.Lock()
    kept = fresh()

    def one(key: str) -> None:
        with lock:
            if key not in records:
                records[key] = "claimed"
        with lock:
            records[key] = ANSWER

    one(kept)

    def new(calls: int) -> None:
        for _ in range(calls):
            os.urandom(16)
            one(fresh())

    def replay(calls: int) -> None:
        for _ in range(calls):
            os.urandom(16)
            with lock:
                found = records.get(kept)
            assert found == ANSWER

    return Side("a dict and a Lock", new, replay)


@contextmanager
def sqlite(folder: Path) -> Iterator[Opened]:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(CREATE.format("bare", "blob", "blob"))
    url = f"sqlite:///{folder}/idemcore.db"
    store = SQLAlchemyStore(url)
    store.create_schema()

    def fill(rows: int, until: int) -> None:
        counted = f"SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}"
        series = f"(WITH RECURSIVE n(i) AS ({counted}) SELECT i FROM n) AS n"
        other = sqlite3.connect(folder / "idemcore.db")
        with other:
            other.execute(finished(DEFAULT_NAME, series, "hex(randomblob(16))", "zeroblob(200)", until))
        other.close()

    sides = [bare("sqlite3", connection.execute, "bare", "?"), ours(store)]
    yield Opened(sides, store, fill, again=partial(open_sql, url, DEFAULT_NAME))
    store.close()
    connection.close()


@contextmanager
def postgresql(driver: str) -> Iterator[Opened]:
    url = POSTGRESQL.set(drivername=f"postgresql+{driver}")
    tables = table_names()
    application = os.environ["PGAPPNAME"] = f"idemcore benchmark {tables[1]}"
    with psycopg.connect(_dsn(), autocommit=True) as connection:
        connection.execute(CREATE.format(tables[0], "bytea", "bytea"))
        store = SQLAlchemyStore(url, table=idempotency_table(MetaData(), name=tables[1]), durable=True)
        store.create_schema()

        def fill(rows: int, until: int) -> None:
            series, body = f"generate_series(1, {rows})", "convert_to(repeat('x', 200), 'UTF8')"
            connection.execute(finished(tables[1], series, "md5(random()::text)", body, until))
            connection.execute(f"VACUUM ANALYZE {tables[1]}")

        try:
            with idemkit_on_postgresql(_dsn(), application) as peers:
                sides = [_driver(driver, tables[0]), ours(store), *peers]
                yield Opened(
                    sides,
                    store,
                    fill,
                    processor_time=_processor_time(connection, application),
                    again=partial(open_sql, url.render_as_string(hide_password=False), tables[1], durable=True),
                )
        finally:
            store.close()
            for table in tables:
                connection.execute(f"DROP TABLE {table}")


def _processor_time(connection: psycopg.Connection[Any], application: str) -> Callable[[], int] | None:
    """With the server's processes that work for this one, where it is Linux and they run here."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
    files = [Path(f"/proc/{pid}/schedstat") for (pid,) in connection.execute(query, (application,))]
    try:
        names = {(file.parent / "comm").read_text().strip() for file in files}
    except OSError:
        return None
    if names != {"postgres"}:
        return None
    used = dict.fromkeys(files, 0)

    def both() -> int:
        for file in files:
            with suppress(OSError):  # a connection that was replaced: what it used by then stays in the sum
                used[file] = int(file.read_text().split()[0])
        return time.process_time_ns() + sum(used.values())

    return both


def _dsn() -> str:
    return POSTGRESQL.set(drivername="postgresql").render_as_string(hide_password=False)


def _driver(driver: str, table: str) -> Side:
    """One connection and one cursor; prepared where the driver can."""
    if driver == "psycopg":
        cursor = psycopg.connect(_dsn(), autocommit=True).cursor()

        def execute(text: str, values: Any) -> Any:
            return cursor.execute(text, values, prepare=True)

    else:
        import psycopg2

        connection = psycopg2.connect(_dsn())
        connection.autocommit = True
        other = connection.cursor()

        def execute(text: str, values: Any) -> Any:
            other.execute(text, values)
            return other

    execute("SET synchronous_commit = on", ())
    execute("SET enable_seqscan = off", ())
    return bare(driver, execute, table, "%s")


def finished(table: str, series: str, key: str, body: str, until: int) -> str:
    return (
        f"INSERT INTO {table} (scope, operation, key, format, state, fingerprint, token, attempt, hold,"
        " created_at, claimed_at, lease_until, completed_at, expires_at, kind, reason, meta, body)"
        f" SELECT 'tenant', 'swept', {key}, 1, 'completed', '{FINGERPRINT}', {body}, 1, false, 1, 1, 1, 1,"
        f" {until}, 'http', '', {body}, {body} FROM {series}"
    )
