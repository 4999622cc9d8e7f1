"""The contract's hooks for MariaDB and MySQL: a table for each test; time is moved from outside the store."""

from __future__ import annotations

from typing import Any, ClassVar

import pymysql
from sqlalchemy import URL, make_url

from tests.stores.server_table import ServerTable
from tests.stores.services import MARIADB_URL, MYSQL_URL
from tests.stores.sql_case import OnTable


def url() -> str:
    """For SQLAlchemy."""
    return MARIADB_URL


def connect(url: str = MARIADB_URL) -> pymysql.Connection[Any]:
    """A connection of the test's own."""
    where: URL = make_url(url)
    return pymysql.connect(
        host=where.host,
        port=where.port or 3306,
        user=where.username,
        password=where.password or "",
        database=where.database,
        autocommit=True,
    )


class Table(ServerTable):
    """A table that no other test uses, and statements on it."""

    key = "`key`"
    server: ClassVar = MARIADB_URL

    def __init__(self) -> None:
        super().__init__(self.server, connect(self.server))

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement; ``{}`` stands for the table."""
        with self.connection.cursor() as cursor:
            cursor.execute(text.replace("{}", f"`{self.name}`"), values)
            return list(cursor.fetchall())


class MySQLTable(Table):
    """On the other of the two."""

    server = MYSQL_URL


class OnMariaDB(OnTable):
    """Mix in before a contract class."""

    make_table: ClassVar[type[Table]] = Table


class OnMySQL(OnTable):
    """Mix in before a contract class of MariaDB's."""

    make_table = MySQLTable
