"""The contract's hooks for a SQLite file: time is moved, and records are damaged, from outside the store."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from idemcore.identity import Identity
from idemcore.stores.sql import SQLAlchemyStore
from tests.stores.server_table import earlier
from tests.stores.sql_case import OnTable

THIS_ROW = "WHERE scope = ? AND operation = ? AND key = ?"


class File:
    """A file of records that no other test uses, and statements on it; it need not be there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def open(self) -> SQLAlchemyStore:
        """A store by URL; the table need not be there."""
        return SQLAlchemyStore(self.url)

    def execute(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement over a connection of the test's own."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(sql, values).fetchall()

    def age(self, identity: Identity | None, seconds: float) -> None:
        """Makes one row older, or all."""
        this = THIS_ROW if identity else ""
        self.execute(f"UPDATE idempotency_records SET {earlier(seconds)} {this}", *(identity or ()))

    def write(self, identity: Identity, column: str, value: Any) -> None:
        """Sets one column of one row, whatever its type."""
        self.execute(f"UPDATE idempotency_records SET {column} = ? {THIS_ROW}", value, *identity)

    def empty(self) -> None:
        """Removes every row."""
        self.execute("DELETE FROM idempotency_records")

    def drop(self) -> None:
        """Leaves nothing behind, its folder included."""
        shutil.rmtree(self.path.parent)


class OnSQLite(OnTable):
    """Mix in before a contract class."""

    @classmethod
    def make_table(cls) -> File:
        return File(Path(tempfile.mkdtemp()) / "records.db")
