"""What errors mean in any database: an empty pool, SQLAlchemy's wrapping, a table that is missing or another.

What a driver's own errors mean stands beside its backend, in `postgresql_errors` and its like. No address, no
statement and no value enters a message; what may be chained as its cause shows none either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from idemcore.errors import ConfigurationError, IdempotencyError, StoreUnavailable

Told: TypeAlias = tuple[IdempotencyError, Exception | None]
"""What a caller is told, and what may be chained."""


def explained(error: Exception, table: Table, meaning: Callable[[Exception, Table], Told]) -> Told:
    """Of an error from the pool, from SQLAlchemy or from the driver; `meaning` knows the driver's."""
    if isinstance(error, PoolTimeout):
        return StoreUnavailable("No connection came free in time; enlarge the pool."), error
    if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
        error = error.orig
    return meaning(error, table)


def missing(table: Table) -> ConfigurationError:
    """There is no such table."""
    return ConfigurationError(
        f"The table {table.fullname!r} is missing: run `idemcore init-db` (in a Flask app "
        "`flask idemcore init-db`), or idem.create_schema(), once."
    )


def unfit(table: Table, code: str) -> ConfigurationError:
    """There is one, and our statements do not fit it; `code` is the database's own for it."""
    return ConfigurationError(
        f"The table {table.fullname!r} is not as this version needs it ({code}): see idempotency_table()."
    )
