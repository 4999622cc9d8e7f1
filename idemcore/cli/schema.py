"""``init-db`` and ``ddl``: the table, made or printed."""

from __future__ import annotations

import importlib
from typing import Any

import click

from idemcore.cli.options import answer, json_option, table_options
from idemcore.cli.over_store import store_option
from idemcore.engine import Engine


@click.command("init-db")
@json_option
def init_db(idem: Engine, as_json: bool) -> None:
    """Make the store's table where it is missing. Safe to repeat, and from several hosts at once."""
    idem.create_schema()
    idem.check()
    answer(as_json, {"ready": True}, "ready")


@click.command()
@store_option(required=False)
@click.option(
    "--dialect",
    type=click.Choice(["postgresql", "sqlite", "mysql", "mariadb"]),
    help="Instead of a store's URL.",
)
@table_options
@json_option
def ddl(store: str | None, dialect: str | None, table: str | None, schema: str | None, as_json: bool) -> None:
    """Print the statements that make the table, for whoever runs such statements. Nothing is connected."""
    kind = dialect or (store or "").partition(":")[0].partition("+")[0]
    if not kind:
        raise click.UsageError("say --dialect or --store")
    sql: Any = importlib.import_module("idemcore.stores.sql")  # an extra, so it is loaded where it is used
    statements = sql.table_ddl(kind, name=table or sql.DEFAULT_NAME, schema=schema)
    answer(as_json, {"statements": statements}, "\n\n".join(f"{statement};" for statement in statements))
