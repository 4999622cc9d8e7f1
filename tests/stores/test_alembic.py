"""The table among the user's own, under real Alembic: what autogenerate writes is what the store accepts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, make_url

from idemcore.stores.sql import DEFAULT_NAME, SQLAlchemyStore, idempotency_table
from tests.stores.services import POSTGRES_URL

ENV = """
from alembic import context
from sqlalchemy import create_engine

config = context.config
engine = create_engine(config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, **config.attributes["options"])
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'app.db'}"
        return
    if not POSTGRES_URL:
        pytest.skip("IDEMCORE_TEST_POSTGRES_URL is not set")
    name = f"idem_alembic_{os.getpid()}"
    server = create_engine(make_url(POSTGRES_URL), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        yield make_url(POSTGRES_URL).set(database=name).render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP DATABASE {name}")
    server.dispose()


@pytest.fixture
def alembic(url: str, tmp_path: Path) -> Callable[..., Config]:
    """Makes a folder of migrations, and the configuration that goes with it."""

    def make(**options: Any) -> Config:
        config = Config(tmp_path / "alembic.ini")
        command.init(config, str(tmp_path / "migrations"))
        (tmp_path / "migrations" / "env.py").write_text(ENV)
        config.set_main_option("script_location", str(tmp_path / "migrations"))
        config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
        config.attributes["options"] = options
        return config

    return make


def app_tables() -> MetaData:
    metadata = MetaData()
    Table("orders", metadata, Column("id", Integer, primary_key=True))
    return metadata


def is_accepted(url: str, table: Table) -> bool:
    store = SQLAlchemyStore(url, table=table)
    store.check()
    store.create_schema()  # finds all that it would make
    store.close()
    return True


CONVENTION = {"ix": "ix_%(table_name)s_%(column_0_name)s", "pk": "pk_%(table_name)s"}


@pytest.mark.parametrize(
    ("convention", "name"), [(None, DEFAULT_NAME), (CONVENTION, "kept_answers")], ids=["plain", "convention"]
)
def test_a_table_of_the_users_metadata_is_migrated_once(
    url: str, alembic: Callable[..., Config], convention: dict[str, str] | None, name: str
) -> None:
    """SQL-07: the store accepts what the migration made, and a second autogenerate finds nothing to do."""
    metadata = MetaData(naming_convention=convention) if convention else MetaData()
    Table("orders", metadata, Column("id", Integer, primary_key=True))
    table = idempotency_table(metadata, name=name)
    config = alembic(target_metadata=metadata)
    command.revision(config, "records", autogenerate=True)
    command.upgrade(config, "head")
    assert is_accepted(url, table)
    command.check(config)
    command.downgrade(config, "base")
    command.upgrade(config, "head")
    assert is_accepted(url, table)


def test_a_table_that_the_store_made_is_no_difference_to_its_definition(
    url: str, alembic: Callable[..., Config]
) -> None:
    """Whoever began with `init-db` may move to migrations without one that changes anything."""
    metadata = MetaData()
    assert is_accepted_after_create(url, idempotency_table(metadata))
    command.check(alembic(target_metadata=metadata))


def is_accepted_after_create(url: str, table: Table) -> bool:
    store = SQLAlchemyStore(url, table=table)
    store.create_schema()
    store.close()
    return is_accepted(url, table)


def is_not_ours(thing: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    return not (kind == "table" and name == DEFAULT_NAME)


def test_a_table_that_is_left_out_is_left_alone(url: str, alembic: Callable[..., Config]) -> None:
    """Without `include_object` a migration would drop it, which is the trap that the page names."""
    metadata = app_tables()
    config = alembic(target_metadata=metadata, include_object=is_not_ours)
    assert is_accepted_after_create(url, idempotency_table(MetaData()))
    command.revision(config, "orders", autogenerate=True)
    command.upgrade(config, "head")
    command.check(config)
    assert is_accepted(url, idempotency_table(MetaData()))
    config.attributes["options"] = {"target_metadata": metadata}
    with pytest.raises(CommandError, match="remove_table"):
        command.check(config)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_table_in_a_schema_is_migrated_once(url: str, alembic: Callable[..., Config]) -> None:
    """With Alembic's own `include_schemas`."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA billing")
    engine.dispose()
    metadata = app_tables()
    table = idempotency_table(metadata, schema="billing")
    config = alembic(target_metadata=metadata, include_schemas=True)
    command.revision(config, "records", autogenerate=True)
    command.upgrade(config, "head")
    assert is_accepted(url, table)
    command.check(config)
