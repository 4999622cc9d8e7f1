"""Joins a caller's transaction: one guarded statement in it, and a look from outside where it found no row.

The token is random and stands in the guard, so a statement that finds its row is in the right database and
its claim still stands, whatever else is true of the connection. One that finds none may have been too late,
or may not see what the store sees; only a look over the store's own connection can tell these apart.

The statement is built by SQLAlchemy for the connection that it runs on, so the caller's driver need not be
the store's.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, Table, Update, false
from sqlalchemy.exc import DBAPIError, UnboundExecutionError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from idemcore.errors import ConfigurationError, IdempotencyError, StoreUnavailable
from idemcore.identity import Identity
from idemcore.record import Claim, Record, State, UnreadableRecord
from idemcore.stores.base import CallersTransaction, NotJoined
from idemcore.stores.sql.backend import Backend
from idemcore.stores.sql.rows import claim_parameters
from idemcore.stores.sql.statement_parts import Parts, text_literal

Look = Callable[[Identity], Record | UnreadableRecord | None]

_SNAPSHOTS = ("REPEATABLE READ", "SERIALIZABLE")


class Joining:
    """Marks records of one table as committed."""

    def __init__(self, table: Table, backend: Backend) -> None:
        self._table = table
        self._backend = backend
        self._mark = _mark(table, backend)
        self._binds = frozenset(self._mark.compile(dialect=backend.dialect).params)

    def join(
        self, place: object, claim: Claim, joined: CallersTransaction | None, look: Look
    ) -> CallersTransaction | NotJoined:
        """See `JoiningStore.join`; `look` reads a record over the store's own connection."""
        try:
            connection = self._connection(place)
            transaction = self._transaction(connection)
            if joined is not None:
                if joined is transaction:
                    return transaction
                raise ConfigurationError(
                    "This attempt has joined another transaction, which is still open and locks the record: "
                    "end that one first."
                )
            if self._marks(connection, claim):
                return transaction
        except (DBAPIError, PoolTimeout) as error:
            told, cause = self._backend.explain(error, self._table)
            raise _in_callers_words(told) from cause
        record = look(claim.identity)
        if not isinstance(record, Record) or record.token != claim.token:
            return "lost"
        if record.state is State.CLAIMED:
            raise _unseen(connection)
        return "already" if record.state is State.COMMITTED else "lost"

    def _connection(self, place: object) -> Connection:
        if not isinstance(place, Connection):
            # Whoever has a session has loaded this; nobody else pays for it.
            from sqlalchemy.orm import Session, scoped_session

            session = place() if isinstance(place, scoped_session) else place
            if not isinstance(session, Session):
                raise ConfigurationError(
                    "join() takes a SQLAlchemy session, scoped session or connection, "
                    f"not {type(place).__name__}."
                )
            try:
                place = session.connection(bind_arguments={"clause": self._table})
            except UnboundExecutionError:
                raise ConfigurationError(
                    "This session has several databases and none for the idempotency table: give join() the "
                    "session's connection to the store's, session.connection(bind_arguments=...)."
                ) from None
        if place.dialect.name != self._backend.dialect.name:
            raise ConfigurationError(
                f"This transaction is on {place.dialect.name}, the records on {self._backend.dialect.name}: "
                "only one of the store's own database can be joined."
            )
        return place

    def _transaction(self, connection: Connection) -> CallersTransaction:
        if connection.in_nested_transaction():
            raise ConfigurationError(
                "join() in a savepoint would lose the mark with the savepoint: call it before begin_nested(), "
                "or after its end."
            )
        transaction = connection.get_transaction() or connection.begin()
        if self._backend.commits_each(connection.connection.dbapi_connection):
            raise ConfigurationError(
                "This connection commits each statement by itself (AUTOCOMMIT), so the mark would not share "
                "the fate of your rows: join a transaction."
            )
        return transaction

    def _marks(self, connection: Connection, claim: Claim) -> bool:
        values = {**claim_parameters(claim), "now": self._backend.clock()}
        binds = {name: values[name] for name in self._binds}
        # The store knows its table by one name, wherever the caller's others are at the moment.
        options: dict[str, dict[str, str]] = {"schema_translate_map": {}}
        return connection.execute(self._mark, binds, execution_options=options).rowcount > 0


def _mark(table: Table, backend: Backend) -> Update:
    """Hold goes: whether the work was done is known from now on, and nobody could settle the record else."""
    parts = Parts(table, backend)
    return parts.update(
        parts.mine,
        parts.in_state(State.CLAIMED),
        state=text_literal(State.COMMITTED.value),
        hold=false(),
        expires_at=parts.kept(),
    )


def _unseen(connection: Connection) -> ConfigurationError:
    """Outside the claim stands, so nobody has taken it; inside there is no such row."""
    if connection.get_isolation_level() in _SNAPSHOTS:
        return ConfigurationError(
            "This transaction does not see the claim, which is younger than its snapshot (REPEATABLE READ, "
            "SERIALIZABLE): end it, and join one that begins after the claim. If it did begin later, it is on "
            "another database or table than the store's."
        )
    return ConfigurationError(
        "This transaction is on another database, schema or table than the store: only one of the store's own "
        "database can be joined."
    )


def _in_callers_words(told: IdempotencyError) -> IdempotencyError:
    if isinstance(told, StoreUnavailable):
        return StoreUnavailable(f"{told} Roll this transaction back; the whole of it may be run again.")
    return ConfigurationError(f"join() failed in this transaction: {told} Is it on the store's own database?")
