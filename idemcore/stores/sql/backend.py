"""What differs from database to database: a clock, an upsert, how a write begins, what errors mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlalchemy import URL, ColumnElement, Delete, Dialect, Select, Table

from idemcore.stores.sql.meanings import Told
from idemcore.stores.sql.rows import Parameters
from idemcore.stores.sql.sources import Autocommit, Source


class Statement(str):
    """The text of a statement that is run again and again, so that it pays to prepare it."""

    __slots__ = ()


class Backend(Autocommit, Protocol):
    """One kind of database. Connections are the driver's own."""

    now: ColumnElement[int]
    """The deciding clock, in microseconds since the epoch."""

    steady_now: ColumnElement[int]
    """The same, not later, and one value for a whole statement: what an index can be searched by."""

    one_trip: bool
    """Whether reserve-or-fetch can be one statement."""

    full_sql: bool
    """Whether an INSERT knows a guarded ON CONFLICT, an UPDATE can return what it wrote, and rows compare as
    wholes by an index; where not, the store takes two statements for one.
    """

    locks_rows: bool
    """Whether another transaction may have locked one row, which is then left alone and not waited for; where a
    writer has the whole database, nobody can.
    """

    packs: bool
    """Whether a look packs a row into fewer columns (see `packing`): its driver takes long over each."""

    errors: tuple[type[Exception], ...]
    """What the driver raises."""

    dialect: Dialect
    """What statements are compiled with."""

    sweep_batch: int
    """Records that one statement may remove before others have to wait for it."""

    indexed: str
    """Names the first column of each index that a table has, the primary key's included. Binds: `of_table`, and
    `in_schema`, where NULL is the default one.
    """

    def open(self, url: URL) -> Source:
        """Connections of the store's own."""
        ...

    def insert(self, table: Table) -> Any:
        """An INSERT; with `full_sql` one that knows ON CONFLICT."""
        ...

    def sweep(
        self,
        dead: Delete,
        primary_key: Sequence[ColumnElement[Any]],
        pick: Callable[..., Select[Any]],
        returned: Sequence[ColumnElement[Any]],
    ) -> Statement:
        """Removes one batch and returns it; without `full_sql` it only picks and locks that batch.

        Args:
            dead: the guarded DELETE; it lacks which rows.
            primary_key: columns that a row may be found by.
            pick: selects the batch, with the columns that this database finds a row by best.
            returned: columns of what was removed.
        """
        ...

    def size(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """How many bytes it holds, without reading them; NULL where it holds no bytes."""
        ...

    def clock(self) -> int:
        """The value of the bind ``now``, where the clock is one."""
        ...

    def begin_schema(self, connection: Any) -> Any:
        """Before the schema is made: several processes may be at it. Returns what the end wants back."""
        ...

    def end_schema(self, connection: Any, begun: Any, *, good: bool) -> None:
        """After it."""
        ...

    def begin_write(self, connection: Any, *, together: bool) -> Any:
        """Before the statements of one writing verb, which take effect `together` or each for itself. Returns
        what the end wants back.
        """
        ...

    def end_write(self, connection: Any, begun: Any, *, good: bool) -> None:
        """After them; `good` is False where one of them raised."""
        ...

    def try_to_write(self, connection: Any, sql: str, parameters: Parameters) -> None:
        """Runs a statement that writes no row, and fails where this process may not write. Where a writer has
        the whole database it waits for none.
        """
        ...

    def commits_each(self, connection: Any) -> bool:
        """Whether a caller's connection, about to write, would commit each statement by itself."""
        ...

    def prepares(self, connection: Any) -> bool:
        """Whether this connection prepares a `Statement`, so that reserve-or-fetch in one of them pays."""
        ...

    def largest(self, connection: Any) -> int:
        """The most bytes of an answer that it takes, and gives back, over this connection."""
        ...

    def examine(self, connection: Any) -> None:
        """Raises ConfigurationError where the database is of a kind that cannot hold every record."""
        ...

    def is_read_only(self, error: Exception) -> bool:
        """Whether a statement was refused for no other reason than that it would have written."""
        ...

    def is_gone(self, connection: Any) -> bool:
        """Whether an error has left the connection dead."""
        ...

    def rows(self, connection: Any, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Runs a statement and fetches all that it returns."""
        ...

    def count(self, connection: Any, sql: str, parameters: Parameters) -> int:
        """Runs a statement and says how many rows it wrote."""
        ...

    def explain(self, error: Exception, table: Table) -> Told:
        """What a driver's error means to a caller, and what may be chained as its cause: None where the
        driver's own text may show a row, whose key and scope belong in no log.
        """
        ...
