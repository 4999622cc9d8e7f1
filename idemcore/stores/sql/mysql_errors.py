"""What an error of MariaDB's and MySQL's means to a caller, by the server's code or the client's."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Table

from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable
from idemcore.stores.sql.meanings import Told, missing, unfit

DEADLOCK: Final = 1213
_UNKNOWN_WORDS: Final = 1064

_UNAVAILABLE: Final = {
    1040: "The server has no connection left.",
    1203: "The server has no connection left for this user.",
    1205: "Another transaction kept the record locked for too long.",
    DEADLOCK: "The server broke a deadlock with another transaction, again and again.",
    1290: "The server is read-only: a replica, or in the middle of a failover.",
    1792: "The server is read-only: a replica, or in the middle of a failover.",
    1836: "The server is read-only: a replica, or in the middle of a failover.",
    1969: "The server did not finish the statement in time.",
    3024: "The server did not finish the statement in time.",
}
_FULL: Final = (1021, 1114, 1041)
_REFUSED: Final = {
    1044: "the user may not use this database",
    1045: "the user or the password is wrong",
    1049: "there is no such database",
    1142: "the user may not read, write or create the table",
    1143: "the user may not read or write a column of the table",
    1698: "the user or the password is wrong",
}
_WRONG_TABLE: Final = (1054, 1072, 1264, 1265, 1364, 1366, 1406, 1292, 4025, 3819)
_LOST: Final = range(2000, 2100)
"""Codes of the client: no server, no connection, no answer."""


def meaning(error: Exception, table: Table) -> Told:
    """By the code."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    # What the server says of others may quote a row.
    harmless = code in _UNAVAILABLE or code in _FULL or code in _LOST
    return _meaning(code, table), error if harmless else None


def _meaning(code: int, table: Table) -> IdempotencyError:
    if code == 1146:
        return missing(table)
    if code in _REFUSED:
        return ConfigurationError(f"The server refused: {_REFUSED[code]} (error {code}).")
    if code in _WRONG_TABLE:
        return unfit(table, f"error {code}")
    if code == _UNKNOWN_WORDS:
        return ConfigurationError(
            "The server does not know a statement's words (error 1064): it must be MariaDB 10.6 or newer, "
            "or MySQL 8.0.1 or newer."
        )
    if code in _FULL:
        return StoreFull("The server is out of room.")
    if code in _LOST or not code:
        return StoreUnavailable("The server cannot be reached, or did not answer in time.")
    return StoreUnavailable(_UNAVAILABLE.get(code, f"The server did not carry a statement out (error {code})."))
