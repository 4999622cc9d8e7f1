"""A table on a server, for one test: its rows are made older and damaged from outside of the store."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

import itertools
import os
from typing import Any

from sqlalchemy import MetaData

from idemcore.identity import Identity
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table

TIMES = ("created_at", "claimed_at", "lease_until", "completed_at", "expires_at")

_numbers = itertools.count()


def earlier(seconds: float) -> str:
    """What an UPDATE sets to make a row so much older."""
    return ", ".join(f"{name} = {name} - {int(seconds * 1_000_000)}" for name in TIMES)


class ServerTable:
    """A table that no other test uses.

    Args:
        url: of the server, for SQLAlchemy.
        connection: of the test's own; closed with the table.
    """

    key = "key"
    """The column's name, as this server wants it written."""

    def __init__(self, url: str, connection: Any) -> None:
        self.url = url
        self.connection = connection
        self.name = f"idem_{os.getpid()}_{next(_numbers)}"
        self.table = idempotency_table(MetaData(), name=self.name)

    def open(self) -> SQLAlchemyStore:
        """A store by URL; the table need not be there."""
        return SQLAlchemyStore(self.url, table=self.table)

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement; ``{}`` stands for the table."""
        raise NotImplementedError

    def age(self, identity: Identity | None, seconds: float) -> None:
        """Makes one row older, or all."""
        this = self._one if identity else ""
        self.execute(f"UPDATE {{}} SET {earlier(seconds)} {this}", *(identity or ()))

    def write(self, identity: Identity, column: str, value: Any) -> None:
        """Sets one column of one row."""
        self.execute(f"UPDATE {{}} SET {column} = %s {self._one}", value, *identity)

    def empty(self) -> None:
        """Removes every row."""
        self.execute("DELETE FROM {}")

    def drop(self) -> None:
        """Leaves nothing behind."""
        self.execute("DROP TABLE IF EXISTS {}")
        self.connection.close()

    @property
    def _one(self) -> str:
        return f"WHERE scope = %s AND operation = %s AND {self.key} = %s"
