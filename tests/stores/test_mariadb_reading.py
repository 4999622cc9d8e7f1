"""MariaDB: what a look packs into one value comes back as it was; statements run by name where they stay."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor
from sqlalchemy import create_engine

from idemcore.record import Answer, Record, State, Stored, Tombstone, UnreadableRecord
from idemcore.stores.sql import SQLAlchemyStore
from idemcore.stores.sql.backend import Statement
from idemcore.stores.sql.named import NamedStatements
from tests.stores.claims import ANSWER, ONE, B, claim, completed
from tests.stores.mariadb_case import Table, url


@contextmanager
def lent(store: SQLAlchemyStore) -> Iterator[Any]:
    """The connection that the next verb will use."""
    connection, taken = store._db.source.take()
    with connection.cursor() as cursor:
        yield cursor
    store._db.source.give(taken)


def prepared_on(store: SQLAlchemyStore, connection: Any) -> set[str]:
    """Names of the statements that the store believes to be prepared there."""
    names: set[str] = store._db.backend._named._ready[connection]  # type: ignore[attr-defined] # it is a MySQL
    return names


def count(cursor: Any, what: str) -> int:
    """One of the session's own counters."""
    cursor.execute("SHOW SESSION STATUS LIKE %s", (what,))
    return int(cursor.fetchone()[1])


@pytest.mark.parametrize(
    "outcome",
    [
        Answer("http", b"{}", b"done"),
        Answer("returned", b"", b""),
        Answer("raised", b",1,2,", b"3,,"),
        Answer("http", bytes(range(256)), bytes(range(255, -1, -1)) * 1_000),
        Tombstone("too_large"),
        Tombstone("Grösse, 漢字, 🂡, 'quoted' \\ and %s"),
        Tombstone(""),
    ],
)
def test_every_outcome_comes_back_as_it_was(store: SQLAlchemyStore, outcome: Answer | Tombstone) -> None:
    """SQL-06: commas, zero bytes, quotes, texts beyond ASCII, nothing at all."""
    token = b",1;\x00'\\%\xff" + bytes(8)
    mine = claim(token=token, fingerprint="v1.a,b:é,")
    assert store.reserve(mine) is None
    claimed = store.get(ONE)
    assert isinstance(claimed, Record)
    assert (claimed.state, claimed.token, claimed.completed_at) == (State.CLAIMED, token, None)
    assert store.complete(mine, outcome) == Stored()
    kept = store.reserve(claim(token=B))
    assert isinstance(kept, Record)
    assert (kept.token, kept.fingerprint, kept.attempt) == (token, "v1.a,b:é,", 1)
    if isinstance(outcome, Answer):
        assert (kept.state, kept.answer) == (State.COMPLETED, outcome)
    else:
        assert (kept.state, kept.answer, kept.reason) == (State.TOMBSTONE, None, outcome.reason)


@pytest.mark.parametrize(
    "damage",
    [
        "format = 2",
        "state = 'a,b'",
        "kind = ',,,,'",
        "meta = NULL",
        "body = NULL",
        "completed_at = NULL",
        "hold = 2",
    ],
)
def test_a_damaged_row_is_unreadable(store: SQLAlchemyStore, table: Table, damage: str) -> None:
    """DEG-01, SEC-02: never guessed at, whatever the packed value looks like."""
    store.reserve(claim())
    store.complete(claim(), ANSWER)
    with lent(store) as cursor:
        cursor.execute(f"UPDATE {table.name} SET {damage}")
    assert isinstance(store.reserve(claim(token=B)), UnreadableRecord)


def test_a_reason_is_read_whatever_character_set_its_column_was_given(
    store: SQLAlchemyStore, table: Table
) -> None:
    """A table that somebody converted holds the same words in other bytes."""
    store.reserve(claim())
    store.complete(claim(), Tombstone("zu groß"))
    with lent(store) as cursor:
        cursor.execute(f"ALTER TABLE {table.name} MODIFY reason TEXT CHARACTER SET latin1 NOT NULL")
    record = store.get(ONE)
    with lent(store) as cursor:
        cursor.execute(f"ALTER TABLE {table.name} MODIFY reason TEXT CHARACTER SET utf8mb4 NOT NULL")
    assert isinstance(record, Record)
    assert record.reason == "zu groß"


def test_a_statement_is_prepared_once_on_a_connection(store: SQLAlchemyStore) -> None:
    """A look, a claim and its completion, for one key after another."""
    with lent(store) as cursor:
        before = count(cursor, "Com_prepare_sql"), count(cursor, "Com_execute_sql")
    for number in range(5):
        mine = claim(f"k-{number}")
        assert store.reserve(mine) is None
        assert store.complete(mine, ANSWER) == Stored()
    with lent(store) as cursor:
        assert count(cursor, "Com_prepare_sql") - before[0] <= 3
        assert count(cursor, "Com_execute_sql") - before[1] == 15


@pytest.mark.parametrize("lost", ["forgotten", "refused"])
def test_a_server_that_keeps_no_statement_is_sent_the_text(
    store: SQLAlchemyStore, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """A proxy that begins sessions anew, or `max_prepared_stmt_count`: the verb goes on all the same."""
    completed(store, "before")
    with lent(store) as cursor:
        for name in prepared_on(store, cursor.connection):
            cursor.execute(f"DEALLOCATE PREPARE {name}")
        if lost == "refused":
            prepared_on(store, cursor.connection).clear()
    execute = Cursor.execute

    def refusing(self: Cursor, query: str, args: Any = None) -> int:
        if lost == "refused" and query.startswith("PREPARE"):
            raise pymysql.OperationalError(1461, "Can't create more than max_prepared_stmt_count statements")
        return execute(self, query, args)

    monkeypatch.setattr(Cursor, "execute", refusing)
    completed(store)
    kept = store.reserve(claim(token=B))
    assert isinstance(kept, Record)
    assert kept.answer == ANSWER
    with lent(store) as cursor:
        assert bool(prepared_on(store, cursor.connection)) is (lost == "forgotten")


def test_nothing_is_prepared_on_a_connection_of_the_callers(table: Table) -> None:
    """It comes back to their pool as it was."""
    engine = create_engine(url(), pool_size=1)
    store = SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    assert store.reserve(claim()) is None
    with lent(store) as cursor:
        assert count(cursor, "Com_prepare_sql") == 0
    engine.dispose()


def test_marks_stand_for_values_and_for_nothing_else() -> None:
    """A bind that comes twice is sent twice; a doubled percent sign is one."""
    sent: list[str] = []

    class Connection:
        def escape(self, value: object) -> str:
            return repr(value)

    class Fake:
        connection = Connection()

        def execute(self, text: str) -> None:
            sent.append(text)

    named = NamedStatements(ValueError)
    cursor = Fake()
    text = Statement("a = %(x)s OR b LIKE '%%' OR c = %(y)s OR d = %(x)s")
    assert not named.run(cursor, text, {"x": 1, "y": "z"})
    named.admit(cursor.connection)
    assert named.run(cursor, text, {"x": 1, "y": "z"})
    assert not named.run(cursor, "SELECT 1", {})
    prepared, executed = sent
    assert "a = ? OR b LIKE '%' OR c = ? OR d = ?" in prepared
    assert executed.endswith("USING 1, 'z', 1")
