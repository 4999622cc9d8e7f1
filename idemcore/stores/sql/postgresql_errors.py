"""What an error of PostgreSQL's means to a caller, by its SQLSTATE."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Table

from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable
from idemcore.stores.sql.meanings import Told, missing, unfit

_WRONG_TABLE: Final = ("42703", "42804", "42883", "42P10")
_NO_SUCH_CHARACTER: Final = ("22021", "22P05")
_WRONG_ROW: Final = ("22", "23")
"""Classes of SQLSTATE: a value or a constraint that does not fit our statements."""

_SHOWS_NO_ROW: Final = ("", "08", "25", "28", "3D", "40", "53", "55", "57", "58")
"""Classes about a connection, a lock, room or the server. The driver's text of others may quote a row."""

_NO_CONNECTION: Final = (
    (re.compile(r'FATAL: +(database ".*") does not exist'), "PostgreSQL has no {}: make it, or mend the URL."),
    (re.compile(r"FATAL: +role "), "PostgreSQL does not know the URL's user, or does not let it log in."),
    (re.compile(r"FATAL: +(?:password|\w+) authentication failed"), "PostgreSQL refused the URL's password."),
    (
        re.compile(r'invalid connection option (".*")'),
        "The URL has an option {}, which nobody knows.",
    ),
    (re.compile(r"no password supplied"), "PostgreSQL asks for a password, and the URL has none."),
    (re.compile(r"FATAL: +no pg_hba\.conf entry"), "PostgreSQL admits no such user from here (pg_hba.conf)."),
    (re.compile(r"FATAL: +permission denied for (database)"), "This user may not connect to the {}."),
)
"""What is wrong with a set-up. A connection that was refused has no SQLSTATE, so the words have to do; a
server that speaks another language than English is reported as one that cannot be reached."""

_UNAVAILABLE: Final = {
    "08P01": "A pooler had no session of the server free in time; enlarge its pool.",
    "25006": "The PostgreSQL server is read-only: a replica, or in the middle of a failover.",
    "40001": "PostgreSQL could not put this statement in order with others; too many collide.",
    "40P01": "PostgreSQL broke a deadlock with another transaction, again and again.",
    "53300": "The PostgreSQL server has no connection left.",
    "55P03": "Another transaction kept the record locked for too long.",
    "57014": "PostgreSQL did not finish the statement in time.",
}


def meaning(error: Exception, table: Table) -> Told:
    """By SQLSTATE."""
    if isinstance(error, UnicodeError):  # it quotes the text
        return _meaning("22P05", table), None
    state = sqlstate(error)
    if not state and (wrong := _no_connection(str(error))):
        return ConfigurationError(wrong), error
    return _meaning(state, table), error if state[:2] in _SHOWS_NO_ROW else None


def sqlstate(error: Exception) -> str:
    """As either driver has it; empty where the server did not answer."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or ""


def _meaning(state: str, table: Table) -> IdempotencyError:
    if state in ("42P01", "3F000"):
        return missing(table)
    if state in _NO_SUCH_CHARACTER:
        return ConfigurationError("The database's encoding does not have this text: it must be UTF8.")
    if state in _WRONG_TABLE or state[:2] in _WRONG_ROW:
        return unfit(table, f"SQLSTATE {state}")
    if state == "42501":
        return ConfigurationError(
            f"This user of PostgreSQL may not read, write or create the table {table.fullname!r}."
        )
    if state.startswith("28") or state == "3D000":
        return ConfigurationError("PostgreSQL refused the user, the password or the database's name.")
    if state in ("53100", "53200"):
        return StoreFull("The PostgreSQL server is out of room.")
    if state[:2] not in _SHOWS_NO_ROW:
        return StoreUnavailable(f"PostgreSQL did not carry a statement out (SQLSTATE {state}).")
    return StoreUnavailable(_UNAVAILABLE.get(state, "PostgreSQL cannot be reached."))


def _no_connection(text: str) -> str | None:
    """What the server said against the URL, where it is that."""
    for pattern, meaning in _NO_CONNECTION:
        if found := pattern.search(text):
            return meaning.format(*found.groups())
    return None
