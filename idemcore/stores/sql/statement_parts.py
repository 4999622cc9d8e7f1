"""What the statements have in common: binds, conditions, and the shapes of a row.

Every condition that protects something stands in the statement that writes, so it is checked on the
latest version of the row, under its lock. States are literals, for the planner's sake; everything of a
caller's is a bind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    case,
    exists,
    false,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    update,
)

from idemcore.record import FORMAT, KINDS, State
from idemcore.stores.sql.backend import Backend
from idemcore.stores.sql.rows import IDENTITY_COLUMNS


def text_literal(value: str) -> ColumnElement[str]:
    """A word of ours, as it stands in a statement."""
    return literal_column("'" + value + "'", String)


_FORMAT: Final[ColumnElement[int]] = literal_column(str(FORMAT), Integer)
EMPTY: Final = text_literal("")
NO_ROWS: Final[ColumnElement[int]] = literal_column("0", Integer)
"""Left to itself, SQLite's dialect writes an OFFSET with a bind of its own."""


class Parts:
    """The parts of statements on one table in one kind of database."""

    def __init__(self, table: Table, backend: Backend) -> None:
        self.table = table
        self.backend = backend
        self.now = backend.now
        c = self.c = table.c
        self.mine = c.token == bindparam("my_token", type_=LargeBinary)
        self.lease = bindparam("lease_for", type_=BigInteger)
        self.max_hold = bindparam("hold_for", type_=BigInteger)
        self.retention = bindparam("keep_for", type_=BigInteger)
        self.this_row = and_(
            c.scope == bindparam("at_scope", type_=String),
            c.operation == bindparam("at_operation", type_=String),
            c.key == bindparam("at_key", type_=String),
        )
        # A row that cannot be read is never written to: its format and state are part of every guard.
        self.known = c.format == _FORMAT
        self.lease_over = c.lease_until <= self.now
        self.abandoned = and_(self.in_state(State.CLAIMED), self.lease_over)
        self.owned = and_(self.mine, self.in_state(State.CLAIMED, State.COMMITTED))
        self.open = or_(
            self.in_state(State.UNKNOWN),
            and_(self.in_state(State.CLAIMED, State.COMMITTED), self.lease_over),
        )
        self.past = c.expires_at <= self.now
        self.dead = and_(
            self.past,
            c.hold.is_(false()),
            or_(self.not_in_state(State.CLAIMED, State.COMMITTED), self.lease_over),
        )
        self.readable = and_(
            self.known,
            self.in_state(*State),
            or_(
                self.not_in_state(State.COMPLETED),
                and_(
                    c.kind.in_([text_literal(kind) for kind in KINDS]), c.meta.is_not(None), c.body.is_not(None)
                ),
            ),
        )
        self.forgettable = and_(self.readable, self.dead)

    def in_state(self, *states: State) -> ColumnElement[bool]:
        """Whether a row is in one of these."""
        return self.c.state.in_([text_literal(state.value) for state in states])

    def not_in_state(self, *states: State) -> ColumnElement[bool]:
        """Whether a row is in another than these."""
        return self.c.state.not_in([text_literal(state.value) for state in states])

    def kept(self) -> ColumnElement[int]:
        """Retention from now at the least; normally the expiry written at claim, so its index rests."""
        until = self.now + self.retention
        return case((self.c.expires_at < until, until), else_=self.c.expires_at)

    def update(self, *guards: ColumnElement[bool], **values: Any) -> Update:
        """Of this one row, where it can be read and the guards hold.

        The state is set last: MySQL reads its new value in what follows, and values depend on the old one.
        """
        last = {"state": values.pop("state")} if "state" in values else {}
        pairs = [(self.c[name], value) for name, value in (values | last).items()]
        return update(self.table).where(self.this_row, self.known, *guards).ordered_values(*pairs)

    def after(self, place: Sequence[ColumnElement[str]]) -> ColumnElement[bool]:
        """Whether a row's identity comes after this one, in words that find it by the primary key."""
        columns = [self.c[name] for name in IDENTITY_COLUMNS]
        if self.backend.full_sql:
            return tuple_(*columns) > tuple_(*place)
        return or_(
            *(
                and_(*(columns[n] == place[n] for n in range(first)), columns[first] > place[first])
                for first in range(len(columns))
            )
        )

    def select(self, *columns: str) -> Any:
        """These columns, and the time of the reading."""
        return select(*(self.c[name] for name in columns), self.now.label("read_at"))

    def insert(self, **values: Any) -> Any:
        """Inserts where there is nothing or a forgettable row, which is replaced as a whole; without
        `Backend.full_sql` where there is nothing, and `replace` does the rest.

        Args:
            values: of the columns that differ from insert to insert.
        """
        row = self._row(values)
        statement = self.backend.insert(self.table).values(**row)
        if not self.backend.full_sql:
            return statement
        replaced = {name: statement.excluded[name] for name in row if name not in IDENTITY_COLUMNS}
        return statement.on_conflict_do_update(
            index_elements=[self.c[name] for name in IDENTITY_COLUMNS],
            set_=replaced,
            where=self.forgettable,
        )

    def insert_unless(self, standing: CTE, **values: Any) -> Any:
        """Inserts where there is nothing.

        Args:
            standing: what the same statement has found there; it finds nothing of another's that was not
                committed when it began, so the insert looks again.
            values: of the columns that differ from insert to insert.
        """
        row = self._row(values)
        found_nothing = ~exists(literal_column("1")).select_from(standing)
        return (
            self.backend.insert(self.table)
            .from_select(list(row), select(*row.values()).where(found_nothing), include_defaults=False)
            .on_conflict_do_nothing(index_elements=[self.c[name] for name in IDENTITY_COLUMNS])
        )

    def replace(self, **values: Any) -> Update:
        """Makes a forgettable row new, as a whole, where an INSERT cannot do it."""
        row = self._row(values)
        return self.update(
            self.forgettable, **{name: row[name] for name in row if name not in IDENTITY_COLUMNS}
        )

    def _row(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            "scope": bindparam("at_scope", type_=String),
            "operation": bindparam("at_operation", type_=String),
            "key": bindparam("at_key", type_=String),
            "format": _FORMAT,
            "fingerprint": bindparam("my_fingerprint", type_=Text),
            "token": bindparam("my_token", type_=LargeBinary),
            "attempt": bindparam("my_attempt", type_=Integer),
            "created_at": self.now,
            "claimed_at": self.now,
            **values,
        }

    def claimed(self) -> dict[str, Any]:
        """How a row looks that a claim has just made."""
        return {
            "state": text_literal(State.CLAIMED.value),
            "hold": bindparam("my_hold", type_=Boolean),
            "lease_until": self.now + self.lease,
            "expires_at": self.now + self.max_hold + self.retention,
            "completed_at": null(),
            "kind": EMPTY,
            "reason": EMPTY,
            "meta": null(),
            "body": null(),
        }

    def outcome(self) -> dict[str, Any]:
        """How a finished row looks, in every way that it comes about."""
        return {
            "state": bindparam("new_state", type_=String),
            "kind": bindparam("new_kind", type_=String),
            "reason": bindparam("new_reason", type_=Text),
            "meta": bindparam("new_meta", type_=LargeBinary),
            "body": bindparam("new_body", type_=LargeBinary),
            "hold": false(),
            "lease_until": self.now,
            "completed_at": self.now,
        }
