"""MariaDB and MySQL, through PyMySQL: a plain look, plain INSERTs, guarded UPDATEs by primary key.

What the usual upsert does here is not used. `ON DUPLICATE KEY UPDATE` has no condition, so it takes a lock
even for a replay, and its count of rows depends on a flag of the connection (SQLAlchemy sets it, and then
the count cannot tell an insert from nothing done). So a claim is a look; then an INSERT where nothing
stands, and an error for a duplicate means that a race was lost; or an UPDATE of a forgettable row, whose
guard is checked again under the row's lock.

Every statement is a transaction of its own (autocommit) but for a renewal, which looks first whether the row
is locked, so as to wait for nobody, and a sweep, likewise: it picks a batch, skips what others have locked, and
removes what it has locked itself. A DELETE alone would wait for the first of those rows, live ones included.

`SYSDATE`, not `NOW`: a statement that had to wait must not see the time before its wait. The session's time
zone is UTC, because an hour that happens twice would move leases.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Final

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Delete,
    Dialect,
    Select,
    Table,
    create_engine,
    event,
    func,
    insert,
    literal_column,
)
from sqlalchemy.dialects import registry

from idemcore.errors import ConfigurationError
from idemcore.stores.sql.backend import Statement
from idemcore.stores.sql.meanings import Told, explained
from idemcore.stores.sql.mysql_errors import DEADLOCK, meaning
from idemcore.stores.sql.named import NamedStatements
from idemcore.stores.sql.rows import Parameters
from idemcore.stores.sql.sources import POOL, OwnEngine

_DUPLICATE: Final = 1062
_DUPLICATE_INDEX: Final = 1061
_MOST_TRIES: Final = 20
_COLUMN: Final = 2**24 - 1
"""Bytes of a MEDIUMBLOB. Without a strict sql_mode the server would cut a larger one short."""
_STATEMENT: Final = 16 * 1024
"""Bytes for what a statement holds beside the answer."""
_IN_TRANSACTION: Final = 1  # of the status flags that end each answer of the server's

_ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
"""So that no gap between rows is locked, which is where most deadlocks come from."""


class MySQL:
    """What the store has to know of MariaDB and MySQL: from 10.6 and 8.0.1 on, which have SKIP LOCKED.

    Args:
        durable: refused: a commit waits for the disk by the server's own `innodb_flush_log_at_trx_commit`.

    Raises:
        ImportError: PyMySQL is not installed.
    """

    one_trip = False
    full_sql = False
    locks_rows = True
    packs = True
    sweep_batch = 1000
    indexed = (
        "SELECT column_name FROM information_schema.statistics WHERE table_name = %(of_table)s"
        " AND table_schema = coalesce(%(in_schema)s, DATABASE()) AND seq_in_index = 1"
    )

    def __init__(self, *, durable: bool) -> None:
        if durable:
            raise ConfigurationError(
                "durable=True has no meaning on MariaDB and MySQL, where it is a setting of the server: "
                "innodb_flush_log_at_trx_commit=1, which is its default."
            )
        try:
            self._driver = importlib.import_module("pymysql")
        except ModuleNotFoundError as error:
            raise ImportError(
                "MariaDB and MySQL need the driver PyMySQL: pip install 'idemcore[mysql]'"
            ) from error
        self.errors: tuple[type[Exception], ...] = (self._driver.err.Error,)
        self._named = NamedStatements(self._driver.err.Error)
        self.now: ColumnElement[int] = _microseconds("SYSDATE(6)")
        # Stable over a statement, so an index can be searched by it.
        self.steady_now: ColumnElement[int] = _microseconds("NOW(6)")
        dialect: Any = registry.load("mysql.pymysql")
        self.dialect: Dialect = dialect(paramstyle="pyformat")

    def open(self, url: URL) -> OwnEngine:
        """A pool of connections in autocommit, with limits on waiting."""
        limits = {"connect_timeout": "10", "read_timeout": "20", "write_timeout": "20", "charset": "utf8mb4"}
        missing = {name: value for name, value in limits.items() if name not in url.query}
        engine = create_engine(url.update_query_dict(missing), **POOL)
        places, options = engine.dialect.create_connect_args(engine.url)
        # Else an option that it does not know would be found when it connects.
        signature(self._driver.connect).bind(*places, **options)

        def set_up(connection: Any, _record: object) -> None:
            connection.autocommit(True)
            with connection.cursor() as cursor:
                cursor.execute(_ISOLATION)
                cursor.execute(_settings(connection))
            if _is_mariadb(connection):
                self._named.admit(connection)

        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "connect", set_up)
        return OwnEngine(engine)

    def insert(self, table: Table) -> Any:
        """A plain one."""
        return insert(table)

    def sweep(
        self,
        dead: Delete,  # noqa: ARG002 - other databases look at it
        primary_key: Sequence[ColumnElement[Any]],  # noqa: ARG002 - likewise
        pick: Callable[..., Select[Any]],
        returned: Sequence[ColumnElement[Any]],
    ) -> Statement:
        """The pick alone: no DELETE here skips what others have locked."""
        return Statement(pick(*returned).compile(dialect=self.dialect))

    def size(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """In bytes, for a column of bytes."""
        return func.octet_length(column)

    def clock(self) -> int:
        """Of no use: the server's clock is in the statements."""
        return 0

    def enter(self, connection: Any) -> Any:
        """Autocommit, and UTC; returns what the session had of both."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@session.time_zone, @@session.autocommit")
            time_zone, autocommit = cursor.fetchone()
            cursor.execute("SET time_zone = '+00:00'")
        connection.autocommit(True)
        return time_zone, bool(autocommit)

    def leave(self, connection: Any, before: Any) -> None:
        """Both as they were."""
        time_zone, autocommit = before
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = %s", (time_zone,))
        connection.autocommit(autocommit)

    def begin_schema(self, connection: Any) -> Any:
        """Several processes may be at it; a lock by name, since DDL has no transactions here. Whoever waits for
        it in vain goes on without: IF NOT EXISTS, and an index that is there already, make that safe.
        """
        self.rows(connection, "SELECT GET_LOCK('idemcore schema', 10)", {})

    def end_schema(self, connection: Any, begun: Any, *, good: bool) -> None:  # noqa: ARG002 - the lock alone
        """The lock is given back."""
        self.rows(connection, "SELECT RELEASE_LOCK('idemcore schema')", {})

    def begin_write(self, connection: Any, *, together: bool) -> bool:
        """Nothing, where each statement may be a transaction."""
        if together:
            connection.begin()
        return together

    def end_write(self, connection: Any, begun: bool, *, good: bool) -> None:
        """Commits or rolls back what was begun."""
        if begun and good:
            connection.commit()
        elif begun and connection.open:
            connection.rollback()

    def try_to_write(self, connection: Any, sql: str, parameters: Parameters) -> None:
        """Writers of other rows are not in its way."""
        self.count(connection, sql, parameters)

    def commits_each(self, connection: Any) -> bool:
        """Whether a caller's connection has no transactions of its own."""
        return bool(connection.get_autocommit())

    def prepares(self, connection: Any) -> bool:  # noqa: ARG002 - other databases look at it
        """Not as PostgreSQL does; see `named`."""
        return False

    def largest(self, connection: Any) -> int:
        """That of the column, or what fits into a packet: PyMySQL writes a byte as two digits."""
        packet = int(self.rows(connection, "SELECT @@max_allowed_packet", {})[0][0])
        return min(_COLUMN, (packet - _STATEMENT) // 2)

    def examine(self, connection: Any) -> None:
        """The columns bring their own character set."""

    def is_read_only(self, error: Exception) -> bool:  # noqa: ARG002 - other databases look at it
        """Of no use: a look without a lock comes first, and a replica answers it."""
        return False

    def is_gone(self, connection: Any) -> bool:
        """Whether the connection is of no more use."""
        return not connection.open

    def rows(self, connection: Any, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Fetches all that the statement returns."""
        with connection.cursor() as cursor:
            try:
                self._run(cursor, sql, parameters)
            except self.errors as error:
                # MySQL knows no IF NOT EXISTS for an index.
                if error.args[0] != _DUPLICATE_INDEX:
                    raise
                return ()
            rows: Sequence[Sequence[Any]] = cursor.fetchall()
            return rows

    def count(self, connection: Any, sql: str, parameters: Parameters) -> int:
        """Rows that were found and written; none where an INSERT found that somebody else has been faster."""
        with connection.cursor() as cursor:
            try:
                self._run(cursor, sql, parameters)
            except self._driver.err.IntegrityError as error:
                if error.args[0] != _DUPLICATE:
                    raise
                return 0
            count: int = cursor.rowcount
            return count

    def explain(self, error: Exception, table: Table) -> Told:
        """By the server's code."""
        return explained(error, table, meaning)

    def _connect(
        self, _dialect: object, _record: object, places: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        try:
            return self._driver.connect(*places, **options)
        except RuntimeError as error:  # a package is missing that this user's way to log in takes
            raise ConfigurationError(
                f"PyMySQL cannot log in: {error}. Install it; over TLS none is needed for MySQL's passwords."
            ) from None

    def _run(self, cursor: Any, sql: str, parameters: Parameters) -> None:
        # A deadlock ends the whole transaction, so what is one of several statements is not tried again.
        alone = not cursor.connection.server_status & _IN_TRANSACTION
        for further_tries in reversed(range(_MOST_TRIES)):
            try:
                if not self._named.run(cursor, sql, parameters):
                    cursor.execute(sql, parameters)
            except self.errors as error:
                code = error.args[0] if error.args else 0
                if code != DEADLOCK or not further_tries or not alone:
                    raise
            else:
                return


def _is_mariadb(connection: Any) -> bool:
    return "MariaDB" in (connection.get_server_info() or "")


def _settings(connection: Any) -> str:
    """Of a session of our own: UTC, and limits on waiting, of which one has two names and two units."""
    limit = "max_statement_time = 15" if _is_mariadb(connection) else "max_execution_time = 15000"
    return f"SET time_zone = '+00:00', innodb_lock_wait_timeout = 5, {limit}"


def _microseconds(moment: str) -> ColumnElement[int]:
    return literal_column(f"CAST(UNIX_TIMESTAMP({moment}) * 1000000 AS SIGNED)", BigInteger)
