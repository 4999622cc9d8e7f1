"""The statements that make the table, as the store runs them and as `idemcore ddl` prints them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Dialect, MetaData, Table
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from idemcore.errors import ConfigurationError
from idemcore.stores.sql.table import DEFAULT_NAME, MYSQL, idempotency_table


def statements(table: Table, dialect: Dialect) -> list[str]:
    """The table and its index, each where it is missing."""
    ddl: list[DDLElement] = [CreateTable(table, if_not_exists=True)]
    # MySQL knows no IF NOT EXISTS here; the store takes an index that is there for made.
    ddl += [CreateIndex(index, if_not_exists=dialect.name not in MYSQL) for index in table.indexes]
    return [str(element.compile(dialect=dialect)).strip() for element in ddl]


def table_ddl(dialect: str, *, name: str = DEFAULT_NAME, schema: str | None = None) -> list[str]:
    """The statements that `create_schema` runs, for whoever runs such statements by hand.

    Args:
        dialect: ``postgresql``, ``sqlite``, ``mysql`` or ``mariadb``.
        name: of the table.
        schema: it lives in.

    Raises:
        ConfigurationError: another dialect.
    """
    if dialect not in ("postgresql", "sqlite", *MYSQL):
        raise ConfigurationError(
            f"There is no table for '{dialect}': it is postgresql, sqlite, mysql or mariadb."
        )
    kind: Any = registry.load("mysql" if dialect in MYSQL else dialect)
    return statements(idempotency_table(MetaData(), name=name, schema=schema), kind())
