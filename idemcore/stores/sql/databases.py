"""Which databases are supported: from a URL or an engine to its connections and what to know of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from sqlalchemy import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError

from idemcore.errors import ConfigurationError
from idemcore.stores.sql.backend import Backend
from idemcore.stores.sql.mysql import MySQL
from idemcore.stores.sql.postgresql import PostgreSQL
from idemcore.stores.sql.sources import CallersEngine, Source
from idemcore.stores.sql.sqlite import SQLite
from idemcore.stores.url_options import name_in, unknown_option

Clock = Callable[[], float]

_DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""A bare name means the driver that our extra installs, whatever SQLAlchemy's default."""


def connect(database: str | URL | Engine, *, durable: bool, clock: Clock | None) -> tuple[Source, Backend]:
    """Where connections come from, and what kind of database they lead to. Nothing is connected yet.

    Raises:
        ConfigurationError: not a URL, a database that is not supported, or an option that it does not have.
        ImportError: the driver is not installed.
    """
    if isinstance(database, Engine):
        if durable:
            raise ConfigurationError(
                "durable=True goes with a URL; on an engine of yours set it when it connects: "
                "PRAGMA synchronous=FULL (SQLite), SET synchronous_commit=on (PostgreSQL)."
            )
        driver = f"{database.dialect.name}+{database.dialect.driver}"
        backend = _backend(driver, database.url, durable=False, clock=clock)
        return CallersEngine(database, backend), backend
    url = _parse(database)
    backend = _backend(url.drivername, url, durable=durable, clock=clock)
    try:
        return backend.open(url), backend
    except (ArgumentError, ValueError, TypeError) as error:
        name = name_in(error)
        raise (unknown_option(url.drivername, name) if name else _unreadable(url.drivername)) from None


def _parse(text: str | URL) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        # Without the cause: it shows the text, which may hold a password.
        raise ConfigurationError("This is not a database URL such as 'sqlite:///payments.db'.") from None
    except ValueError:
        raise _unreadable(str(text).partition("://")[0]) from None
    return url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))


def _unreadable(scheme: str) -> ConfigurationError:
    """Raised without its cause, which quotes the URL's port or option."""
    return ConfigurationError(
        f"The port or an option of the '{scheme}://' URL has a value that it cannot have."
    )


def _backend(driver: str, url: URL, *, durable: bool, clock: Clock | None) -> Backend:
    if driver in ("sqlite", "sqlite+pysqlite"):
        if url.database in (None, "", ":memory:") or "memory" in url.query.get("mode", ""):
            raise ConfigurationError(
                "SQLite in memory has a database for each connection: use MemoryStore, or 'memory://'."
            )
        return SQLite(clock or time.time, durable=durable)
    if clock is not None:
        raise ConfigurationError("A clock can be given for SQLite only: elsewhere the server's decides.")
    if driver in ("postgresql+psycopg", "postgresql+psycopg2"):
        return PostgreSQL(driver.partition("+")[2], durable=durable)
    if driver in ("mysql+pymysql", "mariadb+pymysql"):
        return MySQL(durable=durable)
    raise ConfigurationError(
        f"SQLAlchemyStore does not support '{driver}'. "
        "Supported: sqlite, postgresql+psycopg, postgresql+psycopg2, mysql+pymysql, mariadb+pymysql."
    )
