"""The store contract as small pure functions over one record: the reference that real stores are held to.

Every verb takes the record as it stands (None for nothing) and returns the record as it then stands, with
the verb's result. Durations are three booleans that only the clock's functions set: whether the lease
stands, whether max_hold is used up, whether retention is over. Tokens, fingerprints and outcomes are any
values that can be compared. `idemcore/stores/base.py` is the text; where it leaves a choice, the comment
here says which reading this is.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from idemcore.record import Answer, Record, State, Tombstone
from idemcore.stores.base import FAILED_AFTER_COMMIT, ReleaseTo

VERDICT = 104
"""The token that an operator's verdict leaves."""

FINISHED = frozenset((State.COMPLETED, State.TOMBSTONE))
OWNED = frozenset((State.CLAIMED, State.COMMITTED))


class Made(NamedTuple):
    """An outcome: whose it is, and for which request."""

    kind: Literal["answer", "tombstone"]
    fingerprint: str
    maker: int


class Row(NamedTuple):
    """What the store holds under the identity."""

    state: State
    fingerprint: str
    token: int
    attempt: int
    hold: bool
    lease: bool = False
    spent: bool = False
    past: bool = False
    outcome: Made | None = None

    def now(self, state: State, **changed: object) -> Row:
        """The row in another state, kept for the whole retention from now, without a lease."""
        blank = {"lease": False, "spent": False, "past": False, "outcome": None}
        return self._replace(state=state, **{**blank, **changed})  # type: ignore[arg-type]  # fields by name


class Bid(NamedTuple):
    """What a claim says of itself."""

    token: int
    fingerprint: str
    attempt: int
    hold: bool


Joined: TypeAlias = Literal["joined", "already", "lost"]
Verdict: TypeAlias = Literal["released"] | Made


class ModelStore:
    """The verbs. A mutant of the store overrides one."""

    def forgettable(self, row: Row) -> bool:
        return row.past and not row.hold and not row.lease

    def reserve(self, row: Row | None, bid: Bid) -> tuple[Row | None, Row | None]:
        """The second value is the record reported; None: it inserted."""
        if row is None or self.forgettable(row):
            return Row(State.CLAIMED, bid.fingerprint, bid.token, bid.attempt, bid.hold, lease=True), None
        return row, row

    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        if row is None:
            return None, False
        free = row.state is State.RELEASED or (row.state is State.CLAIMED and not row.lease)
        if free and row.token == seen:
            taken = row.now(State.CLAIMED, token=bid.token, attempt=bid.attempt, hold=bid.hold, lease=True)
            return taken, True
        return row, row.state is State.CLAIMED and row.token == bid.token and row.lease

    def complete(self, row: Row | None, bid: Bid, outcome: Made) -> tuple[Row | None, bool]:
        """The second value: Stored, or else Superseded. "Again" means: this very outcome stands already."""
        state = State.COMPLETED if outcome.kind == "answer" else State.TOMBSTONE
        if row is not None and self.may_complete(row, bid):
            return row.now(state, token=bid.token, attempt=bid.attempt, hold=False, outcome=outcome), True
        if row is None or self.forgettable(row):
            return Row(state, bid.fingerprint, bid.token, bid.attempt, hold=False, outcome=outcome), True
        return row, row.token == bid.token and row.outcome == outcome

    def may_complete(self, row: Row, bid: Bid) -> bool:
        if row.token == bid.token:
            return row.state not in FINISHED
        if row.fingerprint != bid.fingerprint:
            return False
        return row.state is State.RELEASED or (row.state is State.CLAIMED and not row.lease and not row.hold)

    def owns(self, row: Row | None, token: int) -> bool:
        return row is not None and row.token == token and row.state in OWNED

    def release(self, row: Row | None, token: int, to: ReleaseTo) -> tuple[Row | None, bool]:
        if row is None:
            return None, to == "deleted"
        if not self.owns(row, token):
            done = row.token == token and (row.state == to or row.state is State.TOMBSTONE)
            return row, done
        if row.state is State.COMMITTED:
            outcome = Made("tombstone", row.fingerprint, token)
            return row.now(State.TOMBSTONE, hold=False, outcome=outcome), True
        if to == "deleted":
            return None, True
        return row.now(State(to), hold=to == "unknown"), True

    def renew(self, row: Row | None, token: int) -> tuple[Row | None, bool]:
        """The second value: whether the lease stands now."""
        if row is None or not self.owns(row, token) or row.spent:
            return row, False
        return row._replace(lease=True), True

    def join(self, row: Row | None, token: int) -> tuple[Row | None, Joined]:
        """Takes effect with the caller's COMMIT; until then the open transaction keeps others off the row.

        Hold is cleared: whether the work was done is known. A committed record that stayed on hold could
        neither be resolved nor ever be forgotten.
        """
        if row is None or row.token != token:
            return row, "lost"
        if row.state is State.COMMITTED:
            return row, "already"
        if row.state is not State.CLAIMED:
            return row, "lost"
        return row._replace(state=State.COMMITTED, hold=False, past=False), "joined"

    def resolve(self, row: Row | None, seen: int, to: Verdict) -> tuple[Row | None, bool]:
        """A verdict ends the claim, so it leaves a token that is nobody's, made from the one that was seen.

        If the claim's own token stayed, a caller whose acknowledgement got lost could claim under it for a
        second time, and whoever saw it before, released by the verdict, could take that second claim over.
        """
        if row is None:
            return None, False
        nobodys = self.token_of_verdict(seen)
        if to == "released":
            open_ = self.open_to_verdicts(row) and self.may_be_cleared(row)
        else:
            open_ = self.open_to_verdicts(row) or row.state is State.RELEASED
        if row.token != seen or not open_:
            done = row.state is State.RELEASED if to == "released" else row.outcome == to
            return row, row.token == nobodys and done
        if to == "released":
            return row.now(State.RELEASED, token=nobodys, hold=False), True
        state = State.COMPLETED if to.kind == "answer" else State.TOMBSTONE
        return row.now(state, token=nobodys, hold=False, outcome=to), True

    def token_of_verdict(self, seen: int) -> int:
        """Made from the seen one so that a repetition is recognised. Here it has one name; the world sees to
        it that one verdict's is not taken for another's.
        """
        return VERDICT

    def open_to_verdicts(self, row: Row) -> bool:
        return row.state is State.UNKNOWN or (row.state in OWNED and not row.lease)

    def may_be_cleared(self, row: Row) -> bool:
        """Whether "not done" can be true of it: what was committed was done."""
        return row.state is not State.COMMITTED

    def sweepable(self, row: Row) -> bool:
        """What a sweeper picks; `sweep` asks again when it removes."""
        return self.forgettable(row)

    def sweep(self, row: Row | None) -> Row | None:
        return None if row is not None and self.forgettable(row) else row


def lease_over(row: Row) -> Row | None:
    """The clock passes the lease's end; None where there is none."""
    return row._replace(lease=False) if row.lease else None


def max_hold_over(row: Row) -> Row | None:
    """The clock passes the claim's start plus max_hold, which no lease outlives."""
    return row._replace(spent=True) if row.state in OWNED and not row.lease and not row.spent else None


def retention_over(row: Row) -> Row | None:
    """The clock passes the record's expiry, which for a claim lies beyond its max_hold."""
    if row.past or (row.state in OWNED and not row.spent):
        return None
    return row._replace(past=True)


def report(row: Row) -> Record:
    """The row as a store reports it: a lease of one second or none."""
    answer = reason = None
    if row.state is State.COMPLETED:
        answer = Answer("returned", b"", repr(row.outcome).encode())
    if row.state is State.TOMBSTONE:
        reason = Tombstone(FAILED_AFTER_COMMIT).reason
    return Record(
        state=row.state,
        fingerprint=tagged(row.fingerprint),
        token=bytes([row.token]),
        attempt=row.attempt,
        hold=row.hold,
        age=1.0,
        lease_left=1.0 if row.lease else 0.0,
        past_retention=row.past,
        answer=answer,
        reason=reason or "",
        completed_at=0.0 if row.state in FINISHED else None,
    )


def tagged(fingerprint: str) -> str:
    """A fingerprint as the machine wants it, under the one rule that the model knows."""
    return f"v1.model:{fingerprint}"
