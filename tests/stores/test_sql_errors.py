"""What each error of a driver's means: whose turn it is, in which words, whether its own text may be shown."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pymysql
import pytest
from sqlalchemy import MetaData
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable
from idemcore.stores.sql import idempotency_table
from idemcore.stores.sql.backend import Backend
from idemcore.stores.sql.mysql import MySQL
from idemcore.stores.sql.postgresql import PostgreSQL
from idemcore.stores.sql.sqlite import SQLite

TABLE = idempotency_table(MetaData(), name="paid")
SECRET = "key k-1 of user-1"


def of_sqlite(code: int, text: str = SECRET) -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_SOMETHING"
    return error


def of_mariadb(code: int) -> Exception:
    return pymysql.OperationalError(code, SECRET)


def of_postgresql(state: str) -> Exception:
    return psycopg.errors.lookup(state)(SECRET)


SQLITE = [
    (of_sqlite(sqlite3.SQLITE_BUSY), StoreUnavailable, "Another program kept the SQLite file locked", True),
    (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), StoreUnavailable, "begin it with BEGIN IMMEDIATE", True),
    (of_sqlite(sqlite3.SQLITE_FULL), StoreFull, "disk that holds the SQLite file is full", True),
    (of_sqlite(sqlite3.SQLITE_READONLY), ConfigurationError, "read-only for this process", True),
    (of_sqlite(sqlite3.SQLITE_CANTOPEN), StoreUnavailable, "does its folder exist", True),
    (of_sqlite(sqlite3.SQLITE_NOTADB), ConfigurationError, "not a SQLite database", True),
    (of_sqlite(sqlite3.SQLITE_IOERR), StoreUnavailable, "could not read or write its file", True),
    (of_sqlite(sqlite3.SQLITE_ERROR, "no such table: paid"), ConfigurationError, "init-db", False),
    (of_sqlite(sqlite3.SQLITE_ERROR), ConfigurationError, r"'paid' is not as .* \(SQLITE_SOMETHING\)", False),
]
MARIADB = [
    (of_mariadb(1146), ConfigurationError, "'paid' is missing: run `idemcore init-db`", False),
    (of_mariadb(1045), ConfigurationError, r"the user or the password is wrong \(error 1045\)", False),
    (of_mariadb(1054), ConfigurationError, r"'paid' is not as this version needs it \(error 1054\)", False),
    (of_mariadb(1064), ConfigurationError, "it must be MariaDB 10.6 or newer", False),
    (of_mariadb(1114), StoreFull, "out of room", True),
    (of_mariadb(1205), StoreUnavailable, "kept the record locked for too long", True),
    (of_mariadb(1213), StoreUnavailable, "broke a deadlock", True),
    (of_mariadb(1290), StoreUnavailable, "read-only: a replica", True),
    (of_mariadb(1969), StoreUnavailable, "did not finish the statement in time", True),
    (of_mariadb(2013), StoreUnavailable, "cannot be reached, or did not answer", True),
    (of_mariadb(1644), StoreUnavailable, r"did not carry a statement out \(error 1644\)", False),
    (pymysql.err.InterfaceError(), StoreUnavailable, "cannot be reached", False),
]
POSTGRESQL = [
    (of_postgresql("42P01"), ConfigurationError, "'paid' is missing: run `idemcore init-db`", False),
    (of_postgresql("42703"), ConfigurationError, r"not as this version needs it \(SQLSTATE 42703\)", False),
    (of_postgresql("23514"), ConfigurationError, r"not as this version needs it \(SQLSTATE 23514\)", False),
    (of_postgresql("42501"), ConfigurationError, "may not read, write or create the table 'paid'", False),
    (of_postgresql("28P01"), ConfigurationError, "refused the user, the password", True),
    (of_postgresql("22021"), ConfigurationError, "it must be UTF8", False),
    (of_postgresql("53100"), StoreFull, "out of room", True),
    (of_postgresql("53300"), StoreUnavailable, "no connection left", True),
    (of_postgresql("25006"), StoreUnavailable, "read-only: a replica", True),
    (of_postgresql("40001"), StoreUnavailable, "too many collide", True),
    (of_postgresql("55P03"), StoreUnavailable, "kept the record locked for too long", True),
    (of_postgresql("57014"), StoreUnavailable, "did not finish the statement in time", True),
    (of_postgresql("0A000"), StoreUnavailable, r"did not carry a statement out \(SQLSTATE 0A000\)", False),
    (UnicodeEncodeError("utf-8", SECRET, 0, 1, ""), ConfigurationError, "it must be UTF8", False),
    (psycopg.OperationalError("FATAL:  role "), ConfigurationError, "does not know the URL's user", True),
    (psycopg.OperationalError("timeout"), StoreUnavailable, "PostgreSQL cannot be reached", True),
]


def backends() -> dict[str, Backend]:
    return {
        "SQLite": SQLite(lambda: 0.0, durable=False),
        "MariaDB": MySQL(durable=False),
        "PostgreSQL": PostgreSQL("psycopg", durable=False),
    }


@pytest.mark.parametrize("wrapped", [False, True], ids=["driver", "SQLAlchemy"])
@pytest.mark.parametrize(
    ("name", "error", "kind", "words", "chained"),
    [
        (name, *case)
        for name, cases in {"SQLite": SQLITE, "MariaDB": MARIADB, "PostgreSQL": POSTGRESQL}.items()
        for case in cases
    ],
)
def test_each_error_has_its_kind_and_words(
    name: str, error: Any, kind: type[IdempotencyError], words: str, chained: bool, wrapped: bool
) -> None:
    """DEG-01: no text of the driver's is in the message, and it is the cause only where it can show no row."""
    told, cause = backends()[name].explain(DBAPIError("", {}, error) if wrapped else error, TABLE)
    assert type(told) is kind
    with pytest.raises(kind, match=words):
        raise told
    assert "k-1" not in str(told)
    assert cause is (error if chained else None)


@pytest.mark.parametrize("name", ["SQLite", "MariaDB", "PostgreSQL"])
def test_an_empty_pool_says_what_to_enlarge(name: str) -> None:
    """SQL-03: it is the caller's to choose."""
    error = PoolTimeout("QueuePool limit of size 1 overflow 0 reached")
    told, cause = backends()[name].explain(error, TABLE)
    assert isinstance(told, StoreUnavailable)
    assert "enlarge the pool" in str(told)
    assert cause is error
