"""A store of one's own, on LMDB: one machine, any number of processes; a commit is on the disk when it returns.

LMDB admits one writing transaction at a time, across processes, so each verb is one of them: look, decide,
write. Nothing that was looked at changes before it is written, and readers wait for nobody. As LMDB demands,
open the store after a fork and not before.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import lmdb

from idemcore.errors import StoreFull, StoreUnavailable
from idemcore.identity import Identity
from idemcore.record import FORMAT, Answer, Claim, Found, Record, State, Stored, Superseded, Swept, Tombstone
from idemcore.record import UnreadableRecord as Unreadable
from idemcore.stores.base import ReleaseTo, Verdict, verdict_token


@dataclass(frozen=True)
class Row:
    """A record as it is written: seconds since the epoch; bytes as text of the same code points."""

    identity: tuple[str, str, str]
    state: str
    fingerprint: str
    token: str
    attempt: int
    hold: bool
    claimed_at: float
    lease_until: float
    expires_at: float
    completed_at: float | None = None
    answer: tuple[Any, str, str] | None = None
    reason: str = ""
    format: int = FORMAT

    def report(self, now: float) -> Record:
        answer = self.answer and Answer(self.answer[0], *map(_bytes, self.answer[1:]))
        owner = (State(self.state), self.fingerprint, _bytes(self.token), self.attempt, self.hold)
        times = (max(now - self.claimed_at, 0.0), self.lease_until - now, self.expires_at <= now)
        return Record(*owner, *times, answer, self.reason, self.completed_at)

    def settled(self, state: str, now: float, retention: float, **changes: Any) -> Row:
        kept = {"lease_until": now, "expires_at": max(self.expires_at, now + retention)}
        return replace(self, **{"state": state, "hold": False, "reason": "", **kept, **changes})

    def finished(self, outcome: Answer | Tombstone, now: float, retention: float, **changes: Any) -> Row:
        if isinstance(outcome, Answer):
            answer = (outcome.kind, _text(outcome.meta), _text(outcome.body))
            return self.settled("completed", now, retention, completed_at=now, answer=answer, **changes)
        return self.settled("tombstone", now, retention, completed_at=now, reason=outcome.reason, **changes)

    def says(self, outcome: Answer | Tombstone) -> bool:
        said = self.finished(outcome, 0, 0)
        return (self.state, self.answer, self.reason) == (said.state, said.answer, said.reason)

    def abandoned(self, now: float) -> bool:
        return self.state == "claimed" and self.lease_until <= now

    def may_complete(self, claim: Claim, now: float) -> bool:
        if self.token == _text(claim.token):
            return self.completed_at is None
        given_up = self.state == "released" or (self.abandoned(now) and not self.hold)
        return given_up and self.fingerprint == claim.fingerprint


class LMDBStore:
    """Keeps records in a folder. The clock is the host's, the same for all processes that share the folder."""

    def __init__(
        self, folder: str, *, clock: Callable[[], float] = time.time, max_bytes: int = 1 << 30
    ) -> None:
        self._clock = clock
        self._env = lmdb.open(folder, map_size=max_bytes, max_dbs=2)
        self._records = self._env.open_db(b"records-1")
        self._due = self._env.open_db(b"due-1")

    def reserve(self, claim: Claim) -> Record | Unreadable | None:
        for writing in (False, True):  # a replay writes nothing and waits for no writer
            with self._transaction(writing) as (txn, now):
                row = self._get(txn, claim.identity)
                if _stands(row, now):
                    return _report(row, now)
                if writing:
                    self._put(txn, claim.identity, _begun(claim, now))
        return None

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        with self._transaction() as (txn, now):
            row = self._get(txn, claim.identity)
            if not isinstance(row, Row):
                return False
            if row.token == _text(seen_token) and (row.state == "released" or row.abandoned(now)):
                self._put(txn, claim.identity, replace(_begun(claim, now), fingerprint=row.fingerprint))
                return True
            return row.token == _text(claim.token) and row.report(now).lease_stands

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        with self._transaction() as (txn, now):
            row, mine = self._get(txn, claim.identity), _text(claim.token)
            if not (isinstance(row, Row) and row.may_complete(claim, now)):
                if _stands(row, now):
                    repeated = isinstance(row, Row) and row.token == mine and row.says(outcome)
                    return Stored() if repeated else Superseded(_report(row, now))
                row = replace(_begun(claim, now), expires_at=now)
            ended = row.finished(outcome, now, claim.retention, token=mine, attempt=claim.attempt)
            self._put(txn, claim.identity, ended)
            return Stored()

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        with self._transaction() as (txn, now):
            row = self._get(txn, claim.identity)
            if row is None:
                return to == "deleted"
            if not isinstance(row, Row) or row.token != _text(claim.token):
                return False
            if row.state != "claimed":
                return row.state == to
            doubt = {"hold": True, "reason": reason} if to == "unknown" else {}
            released = None if to == "deleted" else row.settled(to, now, claim.retention, **doubt)
            self._put(txn, claim.identity, released)
            return True

    def renew(self, claim: Claim) -> float | None:
        with self._transaction() as (txn, now):
            row = self._get(txn, claim.identity)
            if not isinstance(row, Row) or (row.state, row.token) != ("claimed", _text(claim.token)):
                return None
            until = min(now + claim.lease, row.claimed_at + claim.max_hold)
            self._put(txn, claim.identity, replace(row, lease_until=until))
            return until - now

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        with self._transaction() as (txn, now):
            row, left = self._get(txn, identity), _text(verdict_token(seen_token))
            if not isinstance(row, Row):
                return False
            closed_in_time = to != "released" and row.state == "released"
            in_doubt = row.state == "unknown" or row.abandoned(now)
            if row.token == _text(seen_token) and (in_doubt or closed_in_time):
                if to == "released":
                    self._put(txn, identity, row.settled("released", now, retention, token=left))
                else:
                    self._put(txn, identity, row.finished(to, now, retention, token=left))
                return True
            return row.token == left and (row.state == to if to == "released" else row.says(to))

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        with self._transaction() as (txn, now):
            row = self._get(txn, identity)
            if isinstance(row, Row) and row.token == _text(seen_token) and not row.report(now).lease_stands:
                self._put(txn, identity, None)
                return True
            return row is None

    def get(self, identity: Identity) -> Record | Unreadable | None:
        with self._transaction(writing=False) as (txn, now):
            return _report(self._get(txn, identity), now)

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
        page: list[Found] = []
        with self._transaction(writing=False) as (txn, now):
            cursor = txn.cursor(self._records)
            start = b"" if after is None else after.place[0] + b"\0"
            for name, value in cursor if cursor.set_range(start) else ():
                row = _load(value)
                identity = Identity(*json.loads(value)["identity"])
                if scope not in (None, identity.scope) or operation not in (None, identity.operation):
                    continue
                record, kind, size = row, None, None
                if isinstance(row, Row):
                    if state not in (None, row.state) or not (
                        not only_open or row.state == "unknown" or row.abandoned(now)
                    ):
                        continue
                    record = row.report(now)._replace(answer=None)
                    kind, size = (row.answer[0], len(row.answer[2])) if row.answer else (None, None)
                elif state is not None:
                    continue
                page.append(Found(identity, record, kind, size, (name,)))
                if len(page) == limit:
                    break
        return page

    def sweep(self, limit: int) -> Swept:
        finished, lost = 0, []
        with self._transaction() as (txn, now):
            for entry in self._first_due(txn, now, limit):
                name = entry[_TIME.size :]
                value = txn.get(name, db=self._records)
                row, identity = _load(value), Identity(*json.loads(value)["identity"])
                txn.delete(entry, db=self._due)
                txn.delete(name, db=self._records)
                if isinstance(row, Row) and row.state == "claimed":
                    lost.append(identity)
                else:
                    finished += 1
        return Swept(finished, len(lost), tuple(lost))

    def create_schema(self) -> None:
        """LMDB made its files when they were opened."""

    def check(self) -> None:
        with self._transaction() as (txn, now):  # a disk that takes no writes says so
            txn.put(b"checked", _TIME.pack(now), db=self._due)
            txn.delete(b"checked", db=self._due)

    def close(self) -> None:
        self._env.close()

    @contextmanager
    def _transaction(self, writing: bool = True) -> Iterator[tuple[lmdb.Transaction, float]]:
        """And the time, looked at after the wait for other writers."""
        try:
            with self._env.begin(write=writing) as txn:
                yield txn, self._clock()
        except (lmdb.MapFullError, lmdb.DiskError) as error:
            raise StoreFull("LMDB has no room left: raise max_bytes, or sweep.") from error
        except lmdb.Error as error:
            raise StoreUnavailable("LMDB did not carry a transaction out.") from error

    def _get(self, txn: lmdb.Transaction, identity: Identity) -> Row | Unreadable | None:
        value = txn.get(_name(identity), db=self._records)
        return None if value is None else _load(value)

    def _put(self, txn: lmdb.Transaction, identity: Identity, row: Row | None) -> None:
        """The record and what is due; a record on hold is due never."""
        name, before = _name(identity), self._get(txn, identity)
        if isinstance(before, Row):
            txn.delete(_TIME.pack(before.expires_at) + name, db=self._due)
        if row is None:
            txn.delete(name, db=self._records)
            return
        txn.put(name, json.dumps(asdict(row)).encode(), db=self._records)
        if not row.hold:
            txn.put(_TIME.pack(row.expires_at) + name, b"", db=self._due)

    def _first_due(self, txn: lmdb.Transaction, now: float, limit: int) -> list[bytes]:
        entries = []
        for entry in txn.cursor(self._due).iternext(values=False):
            if len(entries) == limit or _TIME.unpack_from(entry)[0] > now:
                break
            entries.append(entry)
        return entries


_TIME = struct.Struct(">d")  # of positive numbers the bytes are in the numbers' order


def _name(identity: Identity) -> bytes:
    """A digest, for LMDB's names are shorter than an identity may be; the record says whose it is."""
    return hashlib.sha256("\0".join(identity).encode()).digest()


def _begun(claim: Claim, now: float) -> Row:
    owner = (claim.fingerprint, _text(claim.token), claim.attempt, claim.hold)
    ends = (now + claim.lease, now + claim.max_hold + claim.retention)
    return Row(tuple(claim.identity), "claimed", *owner, now, *ends)


def _load(value: bytes) -> Row | Unreadable:
    fields = json.loads(value)
    if fields["format"] != FORMAT or fields["state"] not in set(State):
        return Unreadable("its format or its state is not known to this version")
    return Row(**fields | {"answer": fields["answer"] and tuple(fields["answer"])})


def _stands(row: Row | Unreadable | None, now: float) -> bool:
    return isinstance(row, Unreadable) or (row is not None and not row.report(now).forgettable)


def _report(row: Row | Unreadable | None, now: float) -> Any:
    return row.report(now) if isinstance(row, Row) else row


def _text(value: bytes) -> str:
    return bytes(value).decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")
