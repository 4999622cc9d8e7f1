"""What an error of SQLite's means to a caller, by its own code where there is one."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy import Table

from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable
from idemcore.stores.sql.meanings import Told, missing, unfit

BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_SHOWS_NO_ROW: Final = (
    *BUSY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_PERM,
)
"""Codes about the file. The text of others may quote a row: a trigger's own words, a text that is no UTF-8."""


def meaning(error: Exception, table: Table) -> Told:
    """By the code."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return _meaning(error, code, table), error if code in _SHOWS_NO_ROW else None


def _meaning(error: Exception, code: int, table: Table) -> IdempotencyError:
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return StoreUnavailable(
            "SQLite lets no transaction write that began to read before somebody else wrote: join it before "
            "its first read, or begin it with BEGIN IMMEDIATE."
        )
    if code in BUSY:
        return StoreUnavailable("Another program kept the SQLite file locked for too long.")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull("The disk that holds the SQLite file is full.")
    if code == sqlite3.SQLITE_READONLY:
        return ConfigurationError(
            "The SQLite file, or its folder, is read-only for this process: it must be able to write there."
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreUnavailable(
            "The SQLite file cannot be opened: does its folder exist, may this process write in it? To look at "
            "one on a read-only mount, name it sqlite:///file:/path?immutable=1&uri=true."
        )
    if code == sqlite3.SQLITE_NOTADB:
        return ConfigurationError("The file that the URL names is not a SQLite database.")
    if code == sqlite3.SQLITE_ERROR and "no such table" in str(error):
        return missing(table)
    if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
        return StoreUnavailable("SQLite could not read or write its file.")
    return unfit(table, getattr(error, "sqlite_errorname", type(error).__name__))
