"""SQLite: one file, one machine; writers take turns, readers never wait.

A writing verb is a transaction that takes the write lock first (BEGIN IMMEDIATE): one that began by
reading and wanted to write later would fail at once, whatever the timeout. The time is read once the
lock is held, so no claim starts with part of its lease spent on waiting. Threads of this process queue
for a turn of their own, because SQLite's way of waiting is to sleep and try again, which is unfair.

The host's wall clock decides: all processes that share a file share a machine.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Delete,
    Dialect,
    Select,
    Table,
    bindparam,
    case,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects import sqlite as dialects

from idemcore import forked
from idemcore.errors import ConfigurationError, StoreUnavailable
from idemcore.stores.sql.backend import Statement
from idemcore.stores.sql.file_source import File
from idemcore.stores.sql.file_url import check_options, tell_of_new_file
from idemcore.stores.sql.meanings import Told, explained
from idemcore.stores.sql.rows import Parameters
from idemcore.stores.sql.sqlite_errors import BUSY, meaning
from idemcore.stores.turns import Turn, Turns

_WAIT_SECONDS: Final = 5.0
"""For the write lock; SQLite's own default, set by the driver."""

_ONE_WRITE_SECONDS: Final = 0.1
"""For another thread's write that meets no other program's."""

_LEGACY: Final = -1
"""`sqlite3.LEGACY_TRANSACTION_CONTROL`, which Python 3.11 does not name."""

_OLDEST: Final = (3, 35)  # RETURNING

_ROW: Final = 16 * 1024
"""Bytes for what a row holds beside the answer."""


class SQLite(forked.Forkable):
    """What the store has to know of SQLite.

    Args:
        clock: seconds since the epoch.
        durable: whether a recorded outcome survives a power cut (synchronous=FULL), not just a crash of
            the program. Costs a flush to disk for every write.
    """

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    sweep_batch = 100  # writers wait while it runs
    full_sql = True
    locks_rows = False
    indexed = (
        "SELECT part.name FROM pragma_index_list(:of_table, coalesce(:in_schema, 'main')) AS made,"
        " pragma_index_info(made.name, coalesce(:in_schema, 'main')) AS part"
        " WHERE part.seqno = 0 AND NOT made.partial"
    )
    packs = False

    def __init__(self, clock: Callable[[], float], *, durable: bool) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise ConfigurationError(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.35 is the first that will do."
            )
        self.now: ColumnElement[int] = bindparam("now", type_=BigInteger)
        self.steady_now: ColumnElement[int] = self.now
        self.one_trip = False  # there is no trip, and a look without a lock comes first
        self._clock = clock
        self._durable = durable
        self._turns = Turns()
        self._own_connections = False
        kind: Any = dialects.dialect
        self.dialect: Dialect = kind(paramstyle="named")
        forked.register(self)

    def open(self, url: URL) -> File:
        """Connections in autocommit and write-ahead mode, opened as SQLAlchemy would open them.

        A new file under a relative path is a WARNING of the log: a job that is started in another directory
        than before knows nothing of what it did.
        """
        self._own_connections = True
        check_options(url)
        given: tuple[Any, Any] = self.dialect.create_connect_args(url)
        places, options = given[0], {**given[1], "check_same_thread": False}  # any, but one at a time

        def connect() -> sqlite3.Connection:
            was_there = Path(places[0]).exists()
            connection: sqlite3.Connection = sqlite3.connect(*places, **options)
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
            if not was_there:
                tell_of_new_file(url, places[0])
            return connection

        return File(connect)

    def insert(self, table: Table) -> Any:
        """SQLite's INSERT."""
        return dialects.insert(table)

    def sweep(
        self,
        dead: Delete,
        primary_key: Sequence[ColumnElement[Any]],
        pick: Callable[..., Select[Any]],
        returned: Sequence[ColumnElement[Any]],
    ) -> Statement:
        """Rows by key; the pick is materialized, so that the limit holds, however the rest is planned."""
        batch = pick(*primary_key).cte("batch").prefix_with("MATERIALIZED")
        picked = tuple_(*primary_key).in_(select(*batch.c))
        return Statement(dead.where(picked).returning(*returned).compile(dialect=self.dialect))

    def size(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """Both functions look at the row's header alone. Any column of SQLite's may hold text or numbers."""
        return case((func.typeof(column) == literal_column("'blob'"), func.length(column)))

    def clock(self) -> int:
        """The host's time."""
        return int(self._clock() * 1_000_000)

    def enter(self, connection: Any) -> Any:
        """Turns off the driver's own transactions, in whichever of its two ways they are on."""
        mode = getattr(connection, "autocommit", _LEGACY)
        if mode != _LEGACY:
            connection.autocommit = True
            return mode
        level = connection.isolation_level
        connection.isolation_level = None
        return level

    def leave(self, connection: Any, before: Any) -> None:
        """Turns them on again."""
        if isinstance(before, bool):
            connection.autocommit = before
        else:
            connection.isolation_level = before

    def begin_write(self, connection: sqlite3.Connection, *, together: bool) -> Turn:  # noqa: ARG002 - always are
        """Waits for this process's turn, then for the file's write lock."""
        turn = self._turns.wait(_WAIT_SECONDS)
        if turn is None:
            raise StoreUnavailable("Other threads of this process kept the SQLite file busy for too long.")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            turn.give_back()
            raise
        return turn

    def end_write(self, connection: sqlite3.Connection, begun: Turn, *, good: bool) -> None:
        """Commits or rolls back, and lets the next thread in."""
        try:
            if good:
                connection.execute("COMMIT")
        finally:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            finally:
                begun.give_back()

    def begin_schema(self, connection: sqlite3.Connection) -> Turn:
        """A write like any other."""
        return self.begin_write(connection, together=True)

    def end_schema(self, connection: sqlite3.Connection, begun: Turn, *, good: bool) -> None:
        """And its end."""
        self.end_write(connection, begun, good=good)

    def try_to_write(self, connection: sqlite3.Connection, sql: str, parameters: Parameters) -> None:
        """That the file or the folder is read-only SQLite says before it says that somebody else is writing."""
        turn = self._turns.wait(_ONE_WRITE_SECONDS)
        if turn is None:
            return  # another thread of this process is writing, so it may
        ((timeout,),) = connection.execute("PRAGMA busy_timeout").fetchall()
        try:
            connection.execute("PRAGMA busy_timeout=0")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(sql, parameters)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in BUSY:
                raise
        finally:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.execute(f"PRAGMA busy_timeout={timeout}")
            finally:
                turn.give_back()

    def commits_each(self, connection: Any) -> bool:
        """The driver begins a transaction before a write, unless its own ways of doing so are off."""
        if connection.in_transaction:
            return False
        mode = getattr(connection, "autocommit", _LEGACY)
        return bool(connection.isolation_level is None if mode == _LEGACY else mode)

    def largest(self, connection: sqlite3.Connection) -> int:
        """A row is one value to SQLite, which has a limit for it (SQLITE_LIMIT_LENGTH)."""
        return connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - _ROW

    def prepares(self, connection: sqlite3.Connection) -> bool:  # noqa: ARG002 - other databases look at it
        """It is not a matter of plans here."""
        return False

    def examine(self, connection: sqlite3.Connection) -> None:
        """A file holds any text."""

    def is_read_only(self, error: Exception) -> bool:  # noqa: ARG002 - other databases look at it
        """Of no use: a look without a lock comes first, and it works on a read-only file too."""
        return False

    def is_gone(self, connection: sqlite3.Connection) -> bool:  # noqa: ARG002 - other databases look at it
        """A file does not hang up."""
        return False

    def rows(self, connection: sqlite3.Connection, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Fetches to the end: a cursor that is left in the middle of RETURNING keeps the write lock."""
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) is not None or "decode" not in str(error):
                raise
        # Text that is not UTF-8: read it as bytes, which `read_record` then finds damaged.
        before = connection.text_factory
        connection.text_factory = _text_or_bytes
        try:
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.text_factory = before

    def count(self, connection: sqlite3.Connection, sql: str, parameters: Parameters) -> int:
        """Rows written, as SQLite says: the driver counts for no statement that begins with WITH."""
        before = connection.total_changes
        connection.execute(sql, parameters)
        return connection.total_changes - before

    def explain(self, error: Exception, table: Table) -> Told:
        """By SQLite's own code where there is one."""
        return explained(error, table, meaning)

    def at_rest(self) -> Generator[None]:
        """Lets nobody be in the middle of a write: a child would find the file locked for ever.

        The store's own connections are at rest anyway; over a caller's engine it takes the turn.
        """
        if not self._own_connections:
            turn = self._turns.wait(_WAIT_SECONDS)
            try:
                yield
            finally:
                if turn is not None:
                    turn.give_back()

    def start_in_child(self) -> None:
        """Nobody in a child holds the turn."""
        self._turns = Turns()

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.isolation_level = None
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            _write_ahead(connection)
        connection.execute("PRAGMA synchronous=" + ("FULL" if self._durable else "NORMAL"))


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turns write-ahead mode on, for good; several processes may be at it, and SQLite does not wait here."""
    give_up_at = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code == sqlite3.SQLITE_READONLY:
                return  # the first write says so
            if code not in BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)


def _text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
