"""A store written from the contract alone: slow, plain, and obviously what `base.py` says.

It shares no code with any store. Real ones are compared with it step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Stored, Superseded, Tombstone
from idemcore.stores.base import ReleaseTo, Verdict, verdict_token


@dataclass(frozen=True)
class Row:
    """One record, times in the model's own seconds."""

    state: State
    fingerprint: str
    token: bytes
    attempt: int
    hold: bool
    claimed_at: float
    lease_until: float
    expires_at: float
    answer: Answer | None = None
    reason: str = ""
    completed_at: float | None = None


class ModelStore:
    """The contract's verbs over a dict."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rows: dict[Identity, Row] = {}

    def report(self, identity: Identity) -> Record | None:
        row = self.rows.get(identity)
        if row is None:
            return None
        return Record(
            row.state,
            row.fingerprint,
            row.token,
            row.attempt,
            row.hold,
            self.now - row.claimed_at,
            row.lease_until - self.now,
            row.expires_at <= self.now,
            row.answer,
            row.reason,
            row.completed_at,
        )

    def leased(self, row: Row) -> bool:
        return row.state in (State.CLAIMED, State.COMMITTED) and row.lease_until > self.now

    def forgettable(self, identity: Identity) -> bool:
        row = self.rows[identity]
        return row.expires_at <= self.now and not row.hold and not self.leased(row)

    def free(self, identity: Identity) -> bool:
        return identity not in self.rows or self.forgettable(identity)

    def abandoned(self, row: Row) -> bool:
        return row.state is State.CLAIMED and not self.leased(row)

    def open(self, identity: Identity) -> bool:
        row = self.rows[identity]
        return row.state is State.UNKNOWN or self.unended(row)

    def unended(self, row: Row) -> bool:
        return row.state in (State.CLAIMED, State.COMMITTED) and not self.leased(row)

    def owned(self, claim: Claim) -> Row | None:
        row = self.rows.get(claim.identity)
        if row and row.token == claim.token and row.state in (State.CLAIMED, State.COMMITTED):
            return row
        return None

    def reserve(self, claim: Claim) -> Record | None:
        if not self.free(claim.identity):
            return self.report(claim.identity)
        self.rows[claim.identity] = Row(
            State.CLAIMED,
            claim.fingerprint,
            claim.token,
            claim.attempt,
            claim.hold,
            claimed_at=self.now,
            lease_until=self.now + claim.lease,
            expires_at=self.now + claim.max_hold + claim.retention,
        )
        return None

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        row = self.rows.get(claim.identity)
        if row is None:
            return False
        if row.token == seen_token and (row.state is State.RELEASED or self.abandoned(row)):
            self.rows[claim.identity] = Row(
                State.CLAIMED,
                row.fingerprint,
                claim.token,
                claim.attempt,
                claim.hold,
                claimed_at=self.now,
                lease_until=self.now + claim.lease,
                expires_at=self.now + claim.max_hold + claim.retention,
            )
            return True
        return row.state is State.CLAIMED and row.token == claim.token and self.leased(row)

    def finished(self, row: Row, outcome: Answer | Tombstone, retention: float) -> Row:
        answered = isinstance(outcome, Answer)
        return replace(
            row,
            state=State.COMPLETED if answered else State.TOMBSTONE,
            answer=outcome if answered else None,
            reason="" if answered else outcome.reason,
            hold=False,
            lease_until=self.now,
            completed_at=self.now,
            expires_at=max(row.expires_at, self.now + retention),
        )

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        row = self.rows.get(claim.identity)
        if row is not None:
            if row.token == claim.token:
                allowed = row.state not in (State.COMPLETED, State.TOMBSTONE)
            else:
                allowed = row.fingerprint == claim.fingerprint and (
                    row.state is State.RELEASED or (self.abandoned(row) and not row.hold)
                )
            if allowed:
                row = replace(row, token=claim.token, attempt=claim.attempt)
                self.rows[claim.identity] = self.finished(row, outcome, claim.retention)
                return Stored()
        if self.free(claim.identity):
            empty = Row(
                State.CLAIMED, claim.fingerprint, claim.token, claim.attempt, False, self.now, self.now, 0.0
            )
            row = self.finished(empty, outcome, claim.retention)
            self.rows[claim.identity] = row
            return Stored()
        standing = self.report(claim.identity)
        assert row is not None
        assert standing is not None
        same = (row.answer or Tombstone(row.reason)) == outcome
        return Stored() if row.token == claim.token and same else Superseded(standing)

    def release(self, claim: Claim, to: ReleaseTo, reason: str) -> bool:
        row = self.owned(claim)
        if row is None:
            found = self.rows.get(claim.identity)
            if found is None:
                return to == "deleted"
            buried = found.state is State.TOMBSTONE and found.reason == "failed_after_commit"
            return found.token == claim.token and (found.state.value == to or buried)
        if row.state is State.COMMITTED:
            self.rows[claim.identity] = self.finished(row, Tombstone("failed_after_commit"), claim.retention)
        elif to == "deleted":
            del self.rows[claim.identity]
        else:
            self.rows[claim.identity] = replace(
                row,
                state=State(to),
                hold=to == "unknown",
                reason=reason if to == "unknown" else "",
                lease_until=self.now,
                expires_at=max(row.expires_at, self.now + claim.retention),
            )
        return True

    def renew(self, claim: Claim) -> float | None:
        row = self.owned(claim)
        if row is None:
            return None
        until = min(self.now + claim.lease, row.claimed_at + claim.max_hold)
        self.rows[claim.identity] = replace(row, lease_until=until)
        return until - self.now

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        row = self.rows.get(identity)
        left = verdict_token(seen_token)
        if row is None:
            return False
        if to == "released":
            judged = self.open(identity) and row.state is not State.COMMITTED
        else:
            judged = self.open(identity) or row.state is State.RELEASED
        if row.token == seen_token and judged:
            row = replace(row, token=left)
            if to == "released":
                until = max(row.expires_at, self.now + retention)
                self.rows[identity] = replace(
                    row, state=State.RELEASED, hold=False, reason="", lease_until=self.now, expires_at=until
                )
            else:
                self.rows[identity] = self.finished(row, to, retention)
            return True
        if row.token != left:
            return False
        if to == "released":
            return row.state is State.RELEASED
        if row.state not in (State.COMPLETED, State.TOMBSTONE):
            return False
        return (row.answer or Tombstone(row.reason)) == to

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        row = self.rows.get(identity)
        if row is None:
            return True
        if row.token != seen_token or self.leased(row):
            return False
        del self.rows[identity]
        return True
