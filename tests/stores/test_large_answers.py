"""What a store can never keep it says before it is sent, and apart from being away; the work stays done."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event

from idemcore import Engine, NotReplayable
from idemcore.errors import AnswerTooLarge
from idemcore.record import Answer, Record, State
from idemcore.stores.redis import store as redis_store
from idemcore.stores.sql import SQLAlchemyStore
from idemcore.stores.sql.postgresql import PostgreSQL
from idemcore_function import idempotent
from tests.stores import mariadb_case, postgres_case
from tests.stores.claims import A, claim
from tests.stores.redis_case import Keyspace
from tests.stores.services import MARIADB_URL, POSTGRES_URL, REDIS_URL

MB = 1_000_000


def of(size: int) -> Answer:
    """Bytes of all kinds, so that no way to write them down is a short one."""
    return Answer("returned", b"", os.urandom(size))


@pytest.fixture
def mariadb() -> Iterator[SQLAlchemyStore]:
    if not MARIADB_URL:
        pytest.skip("IDEMCORE_TEST_MARIADB_URL is not set")
    table = mariadb_case.Table()
    store = table.open()
    store.create_schema()
    yield store
    store.close()
    table.drop()


def packet() -> int:
    with mariadb_case.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        return int(cursor.fetchall()[0][0])


def test_mariadb_keeps_half_a_packet_and_says_no_to_more(mariadb: SQLAlchemyStore) -> None:
    """A byte is sent as two digits, so half of `max_allowed_packet` is what a statement can carry."""
    half = min(packet() // 2, 2**24 - 1)
    assert mariadb.reserve(claim()) is None
    with pytest.raises(AnswerTooLarge, match="this database takes"):
        mariadb.complete(claim(), of(half))
    largest = of(half - 20_000)
    mariadb.complete(claim(), largest)
    record = mariadb.get(claim().identity)
    assert isinstance(record, Record)
    assert record.answer == largest


def test_a_function_with_a_result_too_large_for_mariadb_runs_once(mariadb: SQLAlchemyStore) -> None:
    """Its caller has the result; a retry is told that it is done, and nothing runs."""
    engine = Engine(mariadb)
    runs = []

    @idempotent(engine, key="{n}", namespace="pdf")
    def pdf(n: int) -> bytes:
        runs.append(n)
        return bytes(packet())

    assert len(pdf(1)) == packet()
    with pytest.raises(NotReplayable, match="too_large"):
        pdf(1)
    assert runs == [1]
    engine.close()


def test_sqlite_says_no_to_what_a_row_cannot_hold(tmp_path: Path) -> None:
    """Its limit is a setting of the connection, 1 GB by default."""
    engine = create_engine(f"sqlite:///{tmp_path / 'paid.db'}")

    def lower(connection: sqlite3.Connection, _: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MB)

    event.listen(engine, "connect", lower)
    store = SQLAlchemyStore(engine)
    store.create_schema()
    store.reserve(claim())
    with pytest.raises(AnswerTooLarge):
        store.complete(claim(), of(MB))
    store.complete(claim(), of(MB - 20_000))
    store.close()


@pytest.mark.skipif(not REDIS_URL, reason="IDEMCORE_TEST_REDIS_URL is not set")
def test_redis_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is far above what a test should send, so it is lowered."""
    monkeypatch.setattr(redis_store, "_LARGEST", MB)
    keyspace = Keyspace()
    store = keyspace.open()
    try:
        store.reserve(claim())
        with pytest.raises(AnswerTooLarge):
            store.complete(claim(), of(MB))
        store.complete(claim(), of(MB - 1_000))
    finally:
        store.close()
        keyspace.drop()


@pytest.mark.skipif(not POSTGRES_URL, reason="IDEMCORE_TEST_POSTGRES_URL is not set")
def test_postgresql_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise."""
    monkeypatch.setattr(PostgreSQL, "largest", lambda *_: MB)
    table = postgres_case.Table()
    store = table.open()
    store.create_schema()
    try:
        store.reserve(claim())
        with pytest.raises(AnswerTooLarge):
            store.complete(claim(), of(MB + 1))
        store.complete(claim(), of(MB))
    finally:
        store.close()
        table.drop()


def test_an_operators_answer_that_is_too_large_changes_nothing(mariadb: SQLAlchemyStore) -> None:
    """The record is as it was, and another verdict can be given."""
    mariadb.reserve(claim())
    mariadb.release(claim(), "unknown", "timeout")
    with pytest.raises(AnswerTooLarge):
        mariadb.resolve(claim().identity, A, of(packet()), 60.0)
    record = mariadb.get(claim().identity)
    assert isinstance(record, Record)
    assert record.state is State.UNKNOWN
