"""The one table: what a record is in a database, and why its columns are what they are.

Scope, operation and key are the primary key and compare byte for byte. Times are whole microseconds
since the epoch by one clock, so every database counts alike. `expires_at` is the only other index and
is written when a record is claimed; what changes while a request runs is in no index, which keeps those
changes cheap.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import mysql

from idemcore.identity import MAX_KEY_BYTES, MAX_OPERATION_BYTES, MAX_SCOPE_BYTES

DEFAULT_NAME: Final = "idempotency_records"


MYSQL: Final = ("mysql", "mariadb")
"""SQLAlchemy's names for one family: which of them it is depends on the URL alone."""

_MYSQL_OPTIONS: Final[dict[str, Any]] = {
    f"{dialect}_{option}": value
    for dialect in MYSQL
    for option, value in {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}.items()
}
_LONG: Final = LargeBinary().with_variant(mysql.MEDIUMBLOB(), *MYSQL)
"""Of MySQL's kinds the plain one ends at 64 kB."""


def _bytewise(most_bytes: int) -> String:
    """Text that compares byte for byte: no text of MySQL's does, where case, accents or spaces at the end
    count for nothing, depending on the collation.
    """
    return String(most_bytes).with_variant(mysql.VARBINARY(most_bytes), *MYSQL)


def idempotency_table(metadata: MetaData, *, name: str = DEFAULT_NAME, schema: str | None = None) -> Table:
    """Defines the table in a `MetaData`, such as that of your own models, so that your migrations make it.

    Args:
        metadata: where the table is registered.
        name: of the table.
        schema: it lives in; the database's default where None.
    """
    return Table(
        name,
        metadata,
        Column("scope", _bytewise(MAX_SCOPE_BYTES), primary_key=True),
        Column("operation", _bytewise(MAX_OPERATION_BYTES), primary_key=True),
        Column("key", _bytewise(MAX_KEY_BYTES), primary_key=True),
        Column("format", SmallInteger, nullable=False),  # of this row; see idemcore.record.FORMAT
        Column("state", String(16), nullable=False),
        Column("fingerprint", Text, nullable=False),
        Column("token", LargeBinary().with_variant(mysql.VARBINARY(16), *MYSQL), nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("hold", Boolean, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("claimed_at", BigInteger, nullable=False),
        Column("lease_until", BigInteger, nullable=False),
        Column("completed_at", BigInteger),
        Column("expires_at", BigInteger, nullable=False, index=True),
        Column("kind", String(16), nullable=False),
        Column("reason", Text, nullable=False),
        Column("meta", _LONG),  # bytes, not JSON: what comes back is what was given
        Column("body", _LONG),
        schema=schema,
        **_MYSQL_OPTIONS,
    )
