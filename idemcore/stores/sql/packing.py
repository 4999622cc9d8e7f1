"""A row in two columns, for a driver that takes long over each: PyMySQL, which reads answers in Python.

Numbers, and texts behind their lengths, become one value that the server writes in its own words. Measured
with PyMySQL 1.2 and MariaDB 10.11, in processor time of both: where a SELECT of four columns by primary key is
1, one of all fifteen is 1.7 and one of these two is 1.2. The body stays as it is, for a value made of it could
be no larger than the server's `max_allowed_packet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnCollection, ColumnElement, func, literal_column

from idemcore.record import Record, UnreadableRecord
from idemcore.stores.sql.rows import read_record

_NUMBERS: Final = ("format", "attempt", "hold", "claimed_at", "lease_until", "expires_at")
_COMMA: Final[ColumnElement[str]] = literal_column("','")
_NOTHING: Final[ColumnElement[str]] = literal_column("''")


def packed(c: ColumnCollection[str, Any], now: ColumnElement[int]) -> Sequence[ColumnElement[Any]]:
    """The columns for a record and the time, which `read_packed` reads; in the words of MySQL."""
    # The token makes bytes of the whole, of each text as it is stored; a reason alone may be more than ASCII.
    reason: ColumnElement[str] = literal_column("CONVERT(reason USING utf8mb4)")
    texts = (c.state, c.kind, c.token, c.fingerprint, reason)
    return (
        func.concat_ws(
            _COMMA,
            *(c[name] for name in _NUMBERS),
            now,
            func.isnull(c.meta),
            *(func.length(text) for text in texts),
            func.ifnull(c.completed_at, _NOTHING),
            func.concat(*texts, func.ifnull(c.meta, _NOTHING)),
        ).label("packed"),
        c.body,
    )


def read_packed(row: Sequence[Any]) -> Record | UnreadableRecord:
    """The record in a row of these columns."""
    packed, body = row
    try:
        *numbers, completed_at, texts = packed.split(b",", 14)
        format_, attempt, hold, claimed_at, lease_until, expires_at, now, no_meta, *lengths = map(int, numbers)
        parts = []
        begin = 0
        for length in lengths:
            parts.append(texts[begin : begin + length])
            begin += length
        state, kind, token, fingerprint, reason = parts
        return read_record(
            (
                format_,
                state.decode(),
                fingerprint.decode(),
                token,
                attempt,
                hold,
                claimed_at,
                lease_until,
                expires_at,
                int(completed_at) if completed_at else None,
                kind.decode(),
                reason.decode(),
                None if no_meta else texts[begin:],
                body,
                now,
            )
        )
    except ValueError:  # a number is missing, a text is no UTF-8
        return UnreadableRecord("a column of it is damaged")
