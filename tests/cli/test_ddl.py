"""`idemcore ddl`: the statements that `create_schema` would run, for whoever runs statements by hand."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import MetaData

from idemcore.cli.main import commands
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table


def ddl(*arguments: str, store: str = "") -> Result:
    return CliRunner().invoke(commands, ["ddl", *arguments], env={"IDEMCORE_STORE": store})


def test_what_it_prints_makes_a_table_that_the_store_accepts(tmp_path: Path) -> None:
    """Fed to a database's own shell, under another name too."""
    path = tmp_path / "records.db"
    for name in ("idempotency_records", "kept"):
        result = ddl("--store", f"sqlite:///{path}", "--table", name)
        assert result.exit_code == 0
        assert path.exists() is (name == "kept")  # nothing is connected
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(result.stdout)
        store = SQLAlchemyStore(f"sqlite:///{path}", table=idempotency_table(MetaData(), name=name))
        store.check()
        store.close()


def test_it_needs_no_database_and_no_driver() -> None:
    """A dialect is enough; the schema is in the statements, and so is what makes them repeatable."""
    asked = ["--dialect", "postgresql", "--table", "kept", "--schema", "billing", "--json"]
    table, index = json.loads(ddl(*asked).stdout)["statements"]
    assert table.startswith("CREATE TABLE IF NOT EXISTS billing.kept (")
    assert "BYTEA" in table
    assert index.startswith("CREATE INDEX IF NOT EXISTS ")
    by_url = ddl("--json", *asked[2:], store="postgresql+psycopg://nobody:hunter2@nowhere/db")
    assert by_url.stdout == ddl(*asked).stdout


def test_mysql_s_statements_know_no_if_not_exists_for_an_index() -> None:
    """MySQL has none, and both names are one family; keys compare as bytes."""
    table, index = json.loads(ddl("--dialect", "mysql", "--json").stdout)["statements"]
    assert "VARBINARY(255)" in table
    assert "MEDIUMBLOB" in table
    assert index.startswith("CREATE INDEX ix_")
    assert ddl("--dialect", "mariadb").stdout == ddl("--dialect", "mysql").stdout


@pytest.mark.parametrize(
    ("arguments", "store", "says"),
    [((), "", "--dialect or --store"), ((), "memory://", "'memory'"), (("--dialect", "dbase"), "", "dbase")],
)
def test_what_has_no_table_is_said_in_a_line(arguments: tuple[str, ...], store: str, says: str) -> None:
    """Exit status 2."""
    result = ddl(*arguments, store=store)
    assert (result.exit_code, says in result.stderr) == (2, True)
