"""PostgreSQL, through psycopg 3 or psycopg2: one statement a step, and the server's clock.

Every statement is a transaction of its own (autocommit). With psycopg 3 statements are prepared (see
`prepared`), and reserve-or-fetch is one of them: it looks first and writes only where nothing stands, so
a replay takes no lock, no transaction id and no write-ahead log. Where nothing can be prepared (psycopg2,
a pooler that forgets) that statement would cost two to four times as much to plan as to run, so a plain
look comes first instead.

A pooler that gives each transaction another session of the server (PgBouncer, `pool_mode = transaction`) would
leave settings and prepared statements with strangers. So where a pooler is in between, each statement is sent
whole, with the settings of its own transaction in front of it.

`clock_timestamp()`, not `now()`: a statement that had to wait must not see the time before its wait.
"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Delete,
    Dialect,
    Float,
    Select,
    Table,
    cast,
    create_engine,
    event,
    func,
    literal_column,
)
from sqlalchemy.dialects import postgresql

from idemcore.errors import ConfigurationError
from idemcore.stores.sql.backend import Statement
from idemcore.stores.sql.meanings import Told, explained
from idemcore.stores.sql.postgresql_errors import meaning, sqlstate
from idemcore.stores.sql.rows import Parameters
from idemcore.stores.sql.sources import POOL, OwnEngine

T = TypeVar("T")

_ANOTHER_TRY: Final = ("40001", "40P01")
"""Serialization failure and deadlock: somebody else has committed, so the same statement may do now."""

_LARGEST: Final = 2**29 - 2**16
_MOST_TRIES: Final = 20
_TRIES_AT_ONCE: Final = 3
_LONGEST_PAUSE: Final = 0.02

_NOT_PREPARED: Final = "26000"
"""Prepared again and gone again: a pooler goes on in another session of the server, which keeps nothing."""

_SETTINGS: Final = (
    # A plan that was cached while the table was tiny would read all of it for ever.
    "enable_seqscan = off",
    # A sweep takes the oldest by the index's order; all that are past their retention would be gathered and
    # sorted for each batch where the server's statistics say that there are few of them.
    "enable_bitmapscan = off",
    # Where it must be read whole, for an operator's list, that setting makes the plan look so dear that
    # the server would compile it: half a second for a handful of rows.
    "jit = off",
    "lock_timeout = '5s'",
    "statement_timeout = '15s'",
)

# Of answers of 64 kB it writes three in the time of one, where the server has it (from 14 on).
_COMPRESSION: Final = (
    "SELECT set_config(name, 'lz4', false) FROM pg_settings"
    " WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)"
)

_CONNECTION: Final = {
    "connect_timeout": "10",
    # A host that is gone says nothing more: noticed after 20 seconds instead of the system's hours.
    "tcp_user_timeout": "20000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
"""Seconds, but for `tcp_user_timeout`; what the URL says comes first."""


class PostgreSQL:
    """What the store has to know of PostgreSQL.

    Args:
        driver: ``psycopg`` or ``psycopg2``.
        durable: whether a commit waits for the disk even where the server's default says otherwise.

    Raises:
        ImportError: the driver is not installed.
    """

    one_trip = True
    sweep_batch = 1000
    full_sql = True
    locks_rows = True
    indexed = (
        "SELECT a.attname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid"
        " JOIN pg_namespace n ON n.oid = t.relnamespace"
        " JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]"
        " WHERE t.relname = %(of_table)s AND n.nspname = coalesce(%(in_schema)s, current_schema())"
        " AND i.indisvalid AND i.indpred IS NULL"
    )
    packs = False

    def __init__(self, driver: str, *, durable: bool) -> None:
        try:
            module = importlib.import_module(driver)
        except ModuleNotFoundError as error:
            extra = "'idemcore[postgres]'" if driver == "psycopg" else "psycopg2-binary"
            raise ImportError(f"PostgreSQL needs the driver {driver}: pip install {extra}") from error
        # A text that the database's encoding does not have is refused by Python itself.
        self.errors: tuple[type[Exception], ...] = (module.Error, UnicodeError)
        self.now: ColumnElement[int] = _microseconds(func.clock_timestamp())
        # Stable over a statement, so an index can be searched by it.
        self.steady_now: ColumnElement[int] = _microseconds(func.statement_timestamp())
        dialects: dict[str, Any] = {
            "psycopg": postgresql.psycopg.dialect,
            "psycopg2": postgresql.psycopg2.dialect,
        }
        self.dialect: Dialect = dialects[driver]()
        self._prepared: Any = None
        if driver == "psycopg":  # which psycopg2 does without, so it is not imported by name
            self._prepared = importlib.import_module("idemcore.stores.sql.prepared").PreparedStatements()
        self._text_cursor: Callable[[Any], Any] = getattr(module, "ClientCursor", None) or _cursor
        self._settings = (*_SETTINGS, "synchronous_commit = on") if durable else _SETTINGS
        self._local = ""  # what goes before each statement where a pooler keeps no session

    def open(self, url: URL) -> OwnEngine:
        """A pool of connections in autocommit, with limits on waiting and without the tiny-table trap."""
        url = url.set(query={**_CONNECTION, **url.query})
        engine = create_engine(url, **POOL)

        def set_up(connection: Any, _record: object) -> None:
            connection.autocommit = True
            if _is_pooled(connection):
                self._local = "".join(f"SET LOCAL {setting}; " for setting in self._settings)
                return
            with connection.cursor() as cursor:
                cursor.execute("; ".join((*(f"SET {setting}" for setting in self._settings), _COMPRESSION)))

        event.listen(engine, "connect", set_up)
        return OwnEngine(engine)

    def insert(self, table: Table) -> Any:
        """PostgreSQL's INSERT."""
        return postgresql.insert(table)

    def sweep(
        self,
        dead: Delete,
        primary_key: Sequence[ColumnElement[Any]],  # noqa: ARG002 - other databases look at it
        pick: Callable[..., Select[Any]],
        returned: Sequence[ColumnElement[Any]],
    ) -> Statement:
        """Rows by where they lie, which nobody changes while the pick has them locked; as an array, so once."""
        lies_at: ColumnElement[Any] = literal_column("ctid")
        picked = lies_at == func.any(func.array(pick(lies_at).correlate(None).scalar_subquery()))
        return Statement(dead.where(picked).returning(*returned).compile(dialect=self.dialect))

    def size(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """Known to PostgreSQL without a look at the bytes."""
        return func.octet_length(column)

    def clock(self) -> int:
        """Of no use: the server's clock is in the statements."""
        return 0

    def enter(self, connection: Any) -> Any:
        """Turns autocommit on."""
        before = connection.autocommit
        connection.autocommit = True
        return before

    def leave(self, connection: Any, before: Any) -> None:
        """Turns it back."""
        connection.autocommit = before

    def begin_schema(self, connection: Any) -> None:
        """IF NOT EXISTS alone fails when two processes create at once."""
        _run(_rows, connection, "BEGIN", {})
        _run(_rows, connection, "SELECT pg_advisory_xact_lock(hashtext('idemcore schema'))", {})

    def end_schema(self, connection: Any, begun: Any, *, good: bool) -> None:  # noqa: ARG002 - none to give back
        """The lock goes with the transaction."""
        _run(_rows, connection, "COMMIT" if good else "ROLLBACK", {})

    def begin_write(self, connection: Any, *, together: bool) -> None:
        """Nothing: each statement is a transaction, and no two here have to stand together."""

    def end_write(self, connection: Any, begun: Any, *, good: bool) -> None:
        """Nothing."""

    def try_to_write(self, connection: Any, sql: str, parameters: Parameters) -> None:
        """Writers of other rows are not in its way."""
        self.count(connection, sql, parameters)

    def commits_each(self, connection: Any) -> bool:
        """Every driver of PostgreSQL's has the same word for it."""
        return connection.autocommit is True

    def prepares(self, connection: Any) -> bool:
        """Whether this connection remembers plans; a pooler in between may be the reason why not."""
        return self._prepared is not None and not self._local and connection.prepare_threshold is not None

    def largest(self, connection: Any) -> int:  # noqa: ARG002 - it is PostgreSQL's own
        """A value has 1 GB, and as text, in which some drivers send and read it, two digits a byte."""
        return _LARGEST

    def examine(self, connection: Any) -> None:
        """In another encoding than UTF8 some scopes and keys would be refused, and reasons be lost."""
        psycopg_3 = self._prepared is not None
        status = connection.info.parameter_status if psycopg_3 else connection.get_parameter_status
        encoding = status("server_encoding")
        if encoding != "UTF8":
            raise ConfigurationError(f"The database's encoding is {encoding}; records need one with UTF8.")

    def is_read_only(self, error: Exception) -> bool:
        """A replica, a failover under way, or a default of the database or the user."""
        return sqlstate(error) == "25006"

    def is_gone(self, connection: Any) -> bool:
        """Whether the connection is of no more use."""
        return bool(connection.closed)

    def rows(self, connection: Any, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Fetches all that the statement returns."""
        kept = self._prepared.rows if isinstance(sql, Statement) and self.prepares(connection) else None
        return self._carry_out(kept, _rows, connection, sql, parameters)

    def count(self, connection: Any, sql: str, parameters: Parameters) -> int:
        """Rows written."""
        kept = self._prepared.count if isinstance(sql, Statement) and self.prepares(connection) else None
        count: int = self._carry_out(kept, _count, connection, sql, parameters)
        return count

    def _carry_out(
        self,
        kept: Callable[[Any, str, Parameters], T] | None,
        read: Callable[[Any], T],
        connection: Any,
        sql: str,
        parameters: Parameters,
    ) -> T:
        """As a statement that the connection keeps, else by a cursor; whole where nothing can be kept."""
        try:
            if kept is not None:
                return _insist(self.errors, kept, connection, sql, parameters)
            if not self._local:
                return _insist(self.errors, partial(_run, read), connection, sql, parameters)
        except self.errors as error:
            if sqlstate(error) != _NOT_PREPARED:
                raise
        return _insist(self.errors, partial(self._run_whole, read), connection, sql, parameters)

    def _run_whole(self, read: Callable[[Any], T], connection: Any, sql: str, parameters: Parameters) -> T:
        """One text, values included, so one transaction; only the last of its results is wanted."""
        with self._text_cursor(connection) as cursor:
            cursor.execute(self._local + sql, parameters)
            if self._prepared is not None:  # psycopg2 has kept only the last
                while cursor.nextset():
                    pass
            return read(cursor)

    def explain(self, error: Exception, table: Table) -> Told:
        """By SQLSTATE."""
        return explained(error, table, meaning)


def _insist(errors: tuple[type[Exception], ...], act: Callable[..., T], *call: Any) -> T:
    """Runs a statement again where another transaction was in its way.

    At once at first; then after a moment drawn by chance, or those that collide would do so again and again.
    """
    for tried in range(_MOST_TRIES - 1):
        try:
            return act(*call)
        except errors as error:
            if sqlstate(error) not in _ANOTHER_TRY:
                raise
        if tried >= _TRIES_AT_ONCE:
            time.sleep(random.uniform(0, _LONGEST_PAUSE))  # noqa: S311 - no secret
    return act(*call)


def _is_pooled(connection: Any) -> bool:
    """A pooler tells each client a number of its own, where a server tells the number of its process."""
    ((process,),) = _run(_rows, connection, "SELECT pg_backend_pid()", {})
    return bool(process != connection.info.backend_pid)


def _cursor(connection: Any) -> Any:
    return connection.cursor()


def _run(read: Callable[[Any], T], connection: Any, sql: str, parameters: Parameters) -> T:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return read(cursor)


def _rows(cursor: Any) -> Sequence[Sequence[Any]]:
    rows: Sequence[Sequence[Any]] = cursor.fetchall() if cursor.description else []
    return rows


def _count(cursor: Any) -> int:
    count: int = cursor.rowcount
    return count


def _microseconds(timestamp: ColumnElement[Any]) -> ColumnElement[int]:
    # In floating point, which is exact to the microsecond until the year 2255; EXTRACT would use NUMERIC.
    seconds = func.date_part(literal_column("'epoch'"), timestamp, type_=Float)
    return cast(seconds * literal_column("1000000", Float), BigInteger)
