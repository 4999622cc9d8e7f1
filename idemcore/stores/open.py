"""From a URL to a store: what a program's configuration names, found and imported only when it is used."""

from __future__ import annotations

import importlib
from typing import Final

from idemcore.errors import ConfigurationError
from idemcore.stores.base import Store
from idemcore.stores.memory import MemoryStore

_EXTRA_FOR: Final = {
    "sqlite": "sql",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""Databases by the first part of their SQLAlchemy URL, and the extra that installs what they need."""

_REDIS: Final = ("redis", "rediss")


def open_store(url: str, table: str | None = None, schema: str | None = None) -> Store:
    """The store that a URL names: ``memory://``, ``redis://…`` (``rediss://…`` with TLS), or a SQLAlchemy URL
    such as ``sqlite:///payments.db``.

    Nothing is connected yet.

    Args:
        url: see above.
        table: of a database, where it has another name than ``idempotency_records``.
        schema: of a database, that holds the table.

    Raises:
        ConfigurationError: the URL names no store that is supported, or one that has no tables. The message
            shows its scheme only.
        ImportError: a package is missing; the message ends with the line that installs it.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ConfigurationError(
            "A store is named by a URL, such as 'sqlite:///payments.db' or 'memory://'; this text has no '://'."
        )
    database = scheme.partition("+")[0]
    if (table is not None or schema is not None) and database not in _EXTRA_FOR:
        raise ConfigurationError(f"A table and a schema are a database's; '{scheme}://' has none.")
    if scheme == "memory":
        if rest:
            raise ConfigurationError("'memory://' takes nothing after it; make a MemoryStore(…) for options.")
        return MemoryStore()
    if scheme in _REDIS:
        return _open_redis(url)
    if database not in _EXTRA_FOR:
        supported = ", ".join(f"{name}://" for name in ("memory", *_EXTRA_FOR, *_REDIS))
        raise ConfigurationError(f"No store is known for '{scheme}://'. Supported: {supported}.")
    return _open_sql(url, _EXTRA_FOR[database], table, schema)


def _open_sql(url: str, extra: str, table: str | None, schema: str | None) -> Store:
    try:
        # Not by name: SQLAlchemy, and all that it loads, is wanted only where a database is named.
        sql = importlib.import_module("idemcore.stores.sql")
    except ImportError as error:
        raise ImportError(f"A store in a database needs SQLAlchemy: pip install 'idemcore[{extra}]'") from error
    named = None
    if table is not None or schema is not None:
        metadata = importlib.import_module("sqlalchemy").MetaData()
        named = sql.idempotency_table(metadata, name=table or sql.DEFAULT_NAME, schema=schema)
    store: Store = sql.SQLAlchemyStore(url, table=named)
    return store


def _open_redis(url: str) -> Store:
    # Nor this, for it loads redis-py; its own ImportError ends with the line that installs it.
    redis = importlib.import_module("idemcore.stores.redis")
    store: Store = redis.RedisStore(url)
    return store
