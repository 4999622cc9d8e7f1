"""The contract's hooks for PostgreSQL: a table for each test; time is moved from outside the store."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from tests.stores.server_table import ServerTable
from tests.stores.services import POSTGRES_URL
from tests.stores.sql_case import OnTable


def url(driver: str = "psycopg") -> str:
    """For SQLAlchemy, with this driver."""
    return make_url(POSTGRES_URL).set(drivername=f"postgresql+{driver}").render_as_string(hide_password=False)


def connect() -> psycopg.Connection[Any]:
    """A connection of the test's own."""
    plain = make_url(POSTGRES_URL).set(drivername="postgresql")
    return psycopg.connect(plain.render_as_string(hide_password=False), autocommit=True)


class Table(ServerTable):
    """A table that no other test uses, and statements on it."""

    def __init__(self, driver: str = "psycopg") -> None:
        super().__init__(url(driver), connect())

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement; ``{}`` stands for the table."""
        cursor = self.connection.execute(sql.SQL(text).format(sql.Identifier(self.name)), values)
        return [] if cursor.description is None else cursor.fetchall()


class OnPostgres(OnTable):
    """Mix in before a contract class."""

    driver = "psycopg"

    @classmethod
    def make_table(cls) -> Table:
        return Table(cls.driver)
