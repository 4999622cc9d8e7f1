"""Links: one connection for one verb, in autocommit, and what its errors mean.

Statements run on the driver's own connection. SQLAlchemy's way from statement to cursor is left out:
measured, it adds 75 to 95 µs to a call, and the connection from its pool alone 14 to 21, where a whole
round trip to PostgreSQL takes about 100.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from sqlalchemy import Table
from sqlalchemy.exc import SQLAlchemyError

from idemcore.stores.sql.backend import Backend
from idemcore.stores.sql.rows import Parameters
from idemcore.stores.sql.sources import Source

T = TypeVar("T")


class Connections:
    """Makes links.

    Args:
        source: of connections.
        backend: what to know of their kind of database.
        table: for messages.
    """

    def __init__(self, source: Source, backend: Backend, table: Table) -> None:
        self.source = source
        self.backend = backend
        self.table = table
        self.errors: tuple[type[Exception], ...] = (*backend.errors, SQLAlchemyError)

    def link(self) -> Link:
        """A connection for one verb, as a context manager."""
        return Link(self)

    def refuse(self, error: Exception) -> NoReturn:
        """Raises what an error of the driver or the pool means to a caller."""
        told, cause = self.backend.explain(error, self.table)
        raise told from cause


class Link:
    """One connection, from entering to leaving.

    Errors of the driver and of the pool leave as this library's.
    """

    __slots__ = ("_backend", "_connection", "_connections", "_now", "_taken", "_untried")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._backend = connections.backend

    def __enter__(self) -> Self:
        connections = self._connections
        try:
            self._connection, self._taken = connections.source.take()
        except connections.errors as error:
            connections.refuse(error)
        self._now: int | None = None
        self._untried = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connections = self._connections
        try:
            if self._taken is not None:  # else it died, and there was no other to be had
                # After any error at all the next verb gets a connection that is surely in order.
                connections.source.give(self._taken, broken=error)
        except connections.errors as failure:
            connections.refuse(failure)
        if isinstance(error, connections.errors):
            connections.refuse(error)

    def writing(self, *, together: bool = False) -> Writing:
        """The statements of one writing verb, as a context manager: they see one time and, where the
        database has it so, one writer. The time is read after the wait for the right to write.

        Args:
            together: they take effect all or not at all, in every database.
        """
        return Writing(self, together)

    def changing_schema(self) -> ChangingSchema:
        """The statements that make the schema, as a context manager: nobody else makes it meanwhile."""
        return ChangingSchema(self)

    def rows(self, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """All rows of one statement."""
        return self._run(self._backend.rows, sql, parameters)

    def count(self, sql: str, parameters: Parameters) -> int:
        """How many rows one statement wrote."""
        return self._run(self._backend.count, sql, parameters)

    def try_to_write(self, sql: str, parameters: Parameters) -> None:
        """Raises where this process may not write; `sql` writes no row."""
        self._run(self._backend.try_to_write, sql, parameters)

    @property
    def prepares(self) -> bool:
        """Whether statements are planned once and not for every call."""
        return self._backend.prepares(self._connection)

    def largest(self) -> int:
        """The most bytes of an answer that can be kept; the database is asked where only it knows."""
        try:
            return self._backend.largest(self._connection)
        except self._connections.errors as error:
            if not self._died_idle:
                raise
            self._replace(error)
            return self._backend.largest(self._connection)

    def examine(self) -> None:
        """Raises ConfigurationError where the database is of a kind that cannot hold every record."""
        self._backend.examine(self._connection)

    def _run(self, act: Callable[[Any, str, Parameters], T], sql: str, parameters: Parameters) -> T:
        parameters["now"] = self._backend.clock() if self._now is None else self._now
        try:
            result = act(self._connection, sql, parameters)
        except self._connections.errors as error:
            if not self._died_idle:
                raise
            self._replace(error)
            result = act(self._connection, sql, parameters)
        self._untried = False
        return result

    def _begin(self, *, together: bool) -> Any:
        """As `_run`; what a transaction has begun cannot go on over another connection."""
        try:
            begun = self._backend.begin_write(self._connection, together=together)
        except self._connections.errors as error:
            if not self._died_idle:
                raise
            self._replace(error)
            begun = self._backend.begin_write(self._connection, together=together)
        self._untried = self._untried and not begun
        return begun

    @property
    def _died_idle(self) -> bool:
        """Most likely. Every verb may be repeated, so one more try is safe."""
        return self._untried and self._backend.is_gone(self._connection)

    def _replace(self, error: Exception) -> None:
        source = self._connections.source
        taken, self._taken = self._taken, None
        source.give(taken, broken=error)
        source.refresh()
        self._connection, self._taken = source.take()


class Writing:
    """The statements of one writing verb on a link."""

    __slots__ = ("_begun", "_link", "_together")

    def __init__(self, link: Link, together: bool) -> None:
        self._link = link
        self._together = together

    def __enter__(self) -> None:
        link = self._link
        backend = link._backend
        self._begun = begun = link._begin(together=self._together)
        try:
            link._now = backend.clock()
        except BaseException:
            backend.end_write(link._connection, begun, good=False)
            raise

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        link = self._link
        link._backend.end_write(link._connection, self._begun, good=kind is None)


class ChangingSchema:
    """The statements that make the schema, on a link."""

    __slots__ = ("_begun", "_link")

    def __init__(self, link: Link) -> None:
        self._link = link

    def __enter__(self) -> None:
        self._begun = self._link._backend.begin_schema(self._link._connection)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._link._backend.end_schema(self._link._connection, self._begun, good=kind is None)
