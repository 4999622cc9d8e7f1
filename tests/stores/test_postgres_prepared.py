"""Statements that a connection prepares once: whatever becomes of the connection in the meantime."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from idemcore.errors import ConfigurationError
from idemcore.record import Answer, Record, Stored
from idemcore.stores.sql import SQLAlchemyStore
from idemcore.stores.sql.backend import Statement
from idemcore.stores.sql.prepared import PreparedStatements
from tests.stores.claims import B, claim
from tests.stores.postgres_case import Table, connect, url

ANSWER = Answer("http", b"\0\xff%s", b"\0" * 70_000)


def kept(store: SQLAlchemyStore, key: str) -> Answer | None:
    assert store.reserve(claim(key)) is None
    assert store.complete(claim(key), ANSWER) == Stored()
    record = store.reserve(claim(key, B))
    assert isinstance(record, Record)
    return record.answer


def test_values_come_back_byte_for_byte(store: SQLAlchemyStore) -> None:
    """In binary: zero bytes, per cent signs, letters of every alphabet, the largest numbers."""
    for key in ("k-1", "Schlüssel", "鍵%s", "🔑%(at_key)s$1", "' OR true --"):
        assert kept(store, key) == ANSWER
    for_ever = claim("ever")._replace(lease=1e15, max_hold=1e15, retention=1e15, attempt=2**31 - 1, hold=True)
    assert store.reserve(for_ever) is None
    record = store.get(for_ever.identity)
    assert isinstance(record, Record)
    assert (record.attempt, record.hold) == (2**31 - 1, True)


def test_a_connection_that_was_made_to_forget_prepares_again(store: SQLAlchemyStore) -> None:
    """A pooler, or a caller's own reset, sends DISCARD ALL; no request notices."""
    assert kept(store, "k-1") == ANSWER
    for number, order in enumerate(("DISCARD ALL", "DEALLOCATE ALL")):
        with store._db.link() as link:
            link.rows(order, {})
        assert kept(store, f"after-{number}") == ANSWER


def test_a_column_whose_type_was_changed_is_planned_for_again(store: SQLAlchemyStore, table: Table) -> None:
    """An operator widens a column while connections have their statements prepared; no request notices."""
    assert kept(store, "k-1") == ANSWER
    table.execute("ALTER TABLE {} ALTER COLUMN reason TYPE varchar(2000)")
    assert kept(store, "k-2") == ANSWER


def test_a_statement_that_is_there_already_is_used(store: SQLAlchemyStore, table: Table) -> None:
    """Behind a pooler another client may have prepared it; its name stands for its text."""
    assert kept(store, "k-1") == ANSWER
    with store._db.link() as link:
        store._db.backend._prepared = PreparedStatements()  # type: ignore[attr-defined] # it is PostgreSQL
        assert len(link.rows("SELECT name FROM pg_prepared_statements WHERE name LIKE 'idemcore%%'", {})) >= 2
    assert kept(store, "k-2") == ANSWER


def test_each_statement_is_a_transaction_of_its_own_whatever_the_flag_says(table: Table) -> None:
    """A connection whose autocommit is off is not left in a transaction, and what it wrote stands."""
    statements = PreparedStatements()
    table.execute("CREATE TABLE {} (key varchar)")
    insert = Statement(f"INSERT INTO {table.name} VALUES (%(key)s)")
    with connect() as connection:
        connection.autocommit = False
        assert statements.count(connection, insert, {"key": "a"}) == 1
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert table.execute("SELECT key FROM {}") == [("a",)]


def test_a_client_encoding_other_than_utf8_is_spoken(table: Table) -> None:
    """What the connection says it speaks is what it is sent."""
    for encoding, key in (("LATIN1", "Schlüssel"), ("EUC_JP", "鍵"), ("UTF8", "🔑")):
        store = SQLAlchemyStore(
            url() + ("&" if "?" in url() else "?") + f"client_encoding={encoding}", table=table.table
        )
        store.create_schema()
        assert kept(store, key) == ANSWER
        assert table.execute("SELECT 1 FROM {} WHERE key = %s", key) == [(1,)]
        store.close()


def test_errors_of_the_server_are_the_drivers(store: SQLAlchemyStore, table: Table) -> None:
    """With their SQLSTATE, and the connection is good for the next statement."""
    statements = PreparedStatements()
    table.execute("INSERT INTO {} SELECT 'a','b','c',1,'x','f','t',1,false,1,1,1,1,1,'k','r','m','b'")
    double = Statement(f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE key = %(key)s")
    with connect() as connection:
        with pytest.raises(psycopg.errors.UniqueViolation):
            statements.count(connection, double, {"key": "c"})
        assert statements.count(connection, double, {"key": "d"}) == 0
        with pytest.raises(psycopg.errors.UndefinedTable):
            statements.rows(connection, Statement("SELECT 1 FROM nowhere"), {})
        assert statements.rows(connection, Statement("SELECT 1, NULL, '%%'::text"), {}) == [(1, None, "%")]


def test_a_column_of_a_strange_type_is_a_mistake_in_the_set_up(store: SQLAlchemyStore, table: Table) -> None:
    """Not guessed at: what this version never made, it does not read."""
    table.execute("ALTER TABLE {} ALTER created_at TYPE numeric, ALTER claimed_at TYPE numeric")
    strange: Any = store.reserve
    with pytest.raises(ConfigurationError, match=table.name):
        strange(claim())
