"""The store in a database: each verb is a guarded statement, and a look at the row where it did not apply."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import URL, Engine, MetaData, Table

from idemcore.errors import StoreUnavailable
from idemcore.identity import Identity
from idemcore.record import (
    Answer,
    Claim,
    Found,
    Record,
    State,
    Stored,
    Superseded,
    Swept,
    Tombstone,
    UnreadableRecord,
)
from idemcore.stores.base import (
    FAILED_AFTER_COMMIT,
    CallersTransaction,
    NotJoined,
    ReleaseTo,
    Verdict,
    verdict_token,
)
from idemcore.stores.sql.connections import Connections, Link
from idemcore.stores.sql.databases import connect
from idemcore.stores.sql.joining import Joining
from idemcore.stores.sql.packing import read_packed
from idemcore.stores.sql.rows import (
    START,
    Parameters,
    claim_parameters,
    finish_parameters,
    identity_parameters,
    microseconds,
    outcome_parameters,
    place_parameters,
    read_found,
    read_record,
    read_swept,
    says,
)
from idemcore.stores.sql.schema import Schema
from idemcore.stores.sql.sizes import refuse_too_large
from idemcore.stores.sql.statements import build
from idemcore.stores.sql.table import idempotency_table


class SQLAlchemyStore:
    """Keeps records in a table.

    Args:
        database: a URL, such as ``sqlite:///payments.db``: then the connections are the store's own; or an
            engine of yours, which is used as it is and never disposed. On SQLite dispose yours before you
            fork, as SQLite demands of everyone; the store's own does that by itself.
        table: from `idempotency_table`, where yours has another name or schema.
        durable: whether a recorded outcome survives a power cut and not just a crash, whatever the
            database's own setting. On SQLite much slower.
        clock: on SQLite, seconds since the epoch; for tests.

    Raises:
        ConfigurationError: not a URL, a database that is not supported, or SQLite in memory.
    """

    def __init__(
        self,
        database: str | URL | Engine,
        *,
        table: Table | None = None,
        durable: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        source, backend = connect(database, durable=durable, clock=clock)
        self._table = idempotency_table(MetaData()) if table is None else table
        self._dialect = backend.dialect
        self.sweep_batch = backend.sweep_batch
        self._sql = build(self._table, backend)
        self._read = read_packed if backend.packs else read_record
        self._joining = Joining(self._table, backend)
        self._db = Connections(source, backend, self._table)
        self._schema = Schema(self._table, self._db, self._sql)

    def __repr__(self) -> str:
        return f"SQLAlchemyStore({self._dialect.name}, {self._table.fullname})"

    def reserve(self, claim: Claim) -> Record | UnreadableRecord | None:
        """See `Store.reserve`. Looks before it writes, so a replay takes no lock and waits for nobody."""
        with self._db.link() as link:
            for _ in range(_MOST_RACES):
                if self._sql.reserve is not None and link.prepares:
                    try:
                        rows = link.rows(self._sql.reserve, claim_parameters(claim))
                    except self._db.errors as error:
                        if not self._db.backend.is_read_only(error):
                            raise
                        # A replica, or a failover under way: what is kept is given back there too.
                        record = self._look(link, identity_parameters(claim.identity))
                        if record is None or _is_forgettable(record):
                            raise
                        return record
                    if not rows:
                        continue  # a race was lost inside the statement: somebody else has committed
                    granted, *row = rows[0]
                    if granted:
                        return None
                    record = read_record(row)
                else:
                    record = self._look(link, identity_parameters(claim.identity))
                if record is not None and not _is_forgettable(record):
                    return record
                with link.writing():
                    if _made(link, self._sql.insert_claim, self._sql.replace_claim, claim_parameters(claim)):
                        return None
        raise StoreUnavailable("Others changed the record again and again while it was to be claimed.")

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        """See `Store.take_over`. Waits for nobody who has locked the row: they work on it."""
        parameters = claim_parameters(claim)
        parameters["seen_token"] = seen_token
        lock = self._sql.lock_takeable
        with self._db.link() as link, link.writing(together=lock is not None):
            if (lock is None or link.rows(lock, parameters)) and link.count(self._sql.take_over, parameters):
                return True
            record = self._look(link, parameters)
        # An earlier try of this very take-over may have done it.
        return (
            isinstance(record, Record)
            and record.state is State.CLAIMED
            and record.token == claim.token
            and record.lease_stands
        )

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        """See `Store.complete`."""
        parameters = finish_parameters(claim, outcome)
        with self._db.link() as link:
            refuse_too_large(link, outcome, claim.identity)
            for _ in range(_MOST_RACES):
                with link.writing():
                    if link.count(self._sql.complete, parameters):
                        return _STORED
                    if link.count(self._sql.complete_late, parameters):
                        return _STORED
                    record = self._look(link, parameters)
                    if record is None or _is_forgettable(record):
                        if _made(link, self._sql.insert_outcome, self._sql.replace_outcome, parameters):
                            return _STORED
                        continue  # somebody else has just claimed it
                if isinstance(record, Record) and record.token == claim.token and says(record, outcome):
                    return _STORED
                return Superseded(record)
        raise StoreUnavailable("Others changed the record again and again while the outcome was to be stored.")

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        """See `Store.release`."""
        parameters = claim_parameters(claim)
        parameters["new_reason"] = reason
        with self._db.link() as link, link.writing():
            if to == "deleted":
                done = link.count(self._sql.delete_claim, parameters) or link.count(
                    self._sql.bury_committed, parameters
                )
            else:
                done = link.count(self._sql.release if to == "released" else self._sql.hold_unknown, parameters)
            if done:
                return True
            record = self._look(link, parameters)
        if record is None:
            return to == "deleted"
        # An earlier try of this very release may have done it.
        return (
            isinstance(record, Record)
            and record.token == claim.token
            and (
                record.state.value == to
                or (record.state is State.TOMBSTONE and record.reason == FAILED_AFTER_COMMIT)
            )
        )

    def renew(self, claim: Claim) -> float | None:
        """See `Store.renew`. Waits for nobody who has locked the row: renewals behind it would wait too."""
        for _ in range(_MOST_LOOKS):
            parameters = claim_parameters(claim)
            with self._db.link() as link, link.writing(together=True):
                left = self._renewed(link, parameters)
                if left:
                    return float(left[0][0]) / 1_000_000
                record = self._look(link, parameters)
            if not isinstance(record, Record) or record.token != claim.token or record.state not in _OWNED:
                return None
            time.sleep(_BETWEEN_LOOKS)  # most likely another verb is at it, which is over in a moment
        raise StoreUnavailable("Another transaction has locked the record.")

    def join(
        self, place: object, claim: Claim, joined: CallersTransaction | None = None
    ) -> CallersTransaction | NotJoined:
        """See `JoiningStore.join`. Takes a session, a scoped session or a connection of SQLAlchemy's."""
        return self._joining.join(place, claim, joined, self.get)

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        """See `Store.resolve`."""
        parameters = identity_parameters(identity)
        left = verdict_token(seen_token)
        parameters.update(seen_token=seen_token, verdict_token=left, keep_for=microseconds(retention))
        with self._db.link() as link, link.writing():
            refuse_too_large(link, to, identity)
            if to == "released":
                done = link.count(self._sql.resolve_released, parameters)
            else:
                done = link.count(self._sql.resolve_outcome, parameters | outcome_parameters(to))
            if done:
                return True
            record = self._look(link, parameters)
        # An earlier try of this very verdict may have done it.
        if not isinstance(record, Record) or record.token != left:
            return False
        return record.state is State.RELEASED if to == "released" else says(record, to)

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        """See `Store.forget`."""
        parameters = {**identity_parameters(identity), "seen_token": seen_token}
        with self._db.link() as link, link.writing():
            return bool(link.count(self._sql.forget, parameters)) or self._look(link, parameters) is None

    def get(self, identity: Identity) -> Record | UnreadableRecord | None:
        """See `Store.get`."""
        with self._db.link() as link:
            return self._look(link, identity_parameters(identity))

    def find(
        self,
        *,
        scope: str | None = None,
        operation: str | None = None,
        state: State | None = None,
        only_open: bool = False,
        after: Found | None = None,
        limit: int,
    ) -> list[Found]:
        """See `Store.find`. Of unreadable records `only_open` misses those with a wrong value in another column
        than format, state, kind, meta and body, which SQLite alone lets happen.
        """
        parameters: Parameters = {
            "only_scope": scope,
            "only_operation": operation,
            "only_state": None if state is None else state.value,
            "only_open": only_open,
            "at_most": limit,
            **place_parameters(START if after is None else after.place),
        }
        with self._db.link() as link:
            return [read_found(row) for row in link.rows(self._sql.find, parameters)]

    def sweep(self, limit: int) -> Swept:
        """See `Store.sweep`."""
        batch: Parameters = {"at_most": limit}
        remove = self._sql.remove_dead
        with self._db.link() as link, link.writing(together=remove is not None):
            rows = link.rows(self._sql.sweep, batch)
            if remove is not None:
                places = [row[1:] for row in rows]
                removed = 0
                for start in range(0, len(places), _MOST_PLACES):
                    removed += link.count(remove, {"places": places[start : start + _MOST_PLACES]})
                if removed != len(rows):  # what went would be unknown; rolled back, nothing did
                    raise StoreUnavailable("The server's clock went back during a sweep: sweep again.")
            return read_swept(rows)

    def create_schema(self) -> None:
        """Makes the table and its index where they are missing; safe from several processes at once.

        Where they are there it changes nothing and waits for nobody.

        Raises:
            ConfigurationError: there is such a table already, and it is another one.
        """
        self._schema.create()

    def check(self) -> None:
        """Asks the database to prepare every statement, and to let this process write; waits for no record.

        Raises:
            ConfigurationError: the table is missing or not as it must be, the file is read-only, or the
                database's encoding is not UTF8.
            StoreUnavailable: the database cannot be reached.
        """
        self._schema.check()

    def close(self) -> None:
        """Closes the store's own connections; an engine of yours stays as it is."""
        self._db.source.close()

    def _renewed(self, link: Link, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """How long the lease stands now, in microseconds; nothing where the row is not ours or is locked."""
        sql = self._sql
        if sql.lock_owned is None or sql.lease_left is None:
            return link.rows(sql.renew, parameters)
        if not link.rows(sql.lock_owned, parameters):
            return ()
        link.count(sql.renew, parameters)
        return link.rows(sql.lease_left, parameters)

    def _look(self, link: Link, parameters: Parameters) -> Record | UnreadableRecord | None:
        rows = link.rows(self._sql.look, parameters)
        return self._read(rows[0]) if rows else None


_STORED: Final = Stored()

_OWNED: Final = (State.CLAIMED, State.COMMITTED)

_MOST_LOOKS: Final = 3
_BETWEEN_LOOKS: Final = 0.01
"""Seconds that a renewal leaves to whoever has locked its row, and how often."""

_MOST_PLACES: Final = 300
"""Rows that one DELETE names, of three values each: a list of a thousand values MariaDB makes a table of, and
reads the other one whole (`in_predicate_conversion_threshold`).
"""

_MOST_RACES: Final = 20
"""Lost races after which a verb gives up; each one means that somebody else got on."""


def _made(link: Link, insert: str, replace: str | None, parameters: Parameters) -> bool:
    """Whether a row was made, where there was none or a forgettable one."""
    return bool(link.count(insert, parameters) or (replace is not None and link.count(replace, parameters)))


def _is_forgettable(record: Record | UnreadableRecord) -> bool:
    return isinstance(record, Record) and record.forgettable
