"""Stores with one clause of the contract wrong. `mutants.py` says what breaks with each."""

from __future__ import annotations

from idemcore.record import State
from idemcore.stores.base import ReleaseTo
from tests.core.model_store import OWNED, Bid, Joined, Made, ModelStore, Row


class ReserveTakesOver(ModelStore):
    def reserve(self, row: Row | None, bid: Bid) -> tuple[Row | None, Row | None]:
        if row is not None and row.state is State.CLAIMED and not row.lease:
            row = None
        return super().reserve(row, bid)


class ReplacesHeld(ModelStore):
    def reserve(self, row: Row | None, bid: Bid) -> tuple[Row | None, Row | None]:
        return super().reserve(row if row is None else row._replace(hold=False), bid)


class NothingIsForgettable(ModelStore):
    def reserve(self, row: Row | None, bid: Bid) -> tuple[Row | None, Row | None]:
        return (row, row) if row is not None else super().reserve(row, bid)


class TakesStandingClaims(ModelStore):
    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        return super().take_over(None if row is None else row._replace(lease=False), seen, bid)


class TakesWhatWasNotSeen(ModelStore):
    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        return super().take_over(row, seen if row is None else row.token, bid)


class TakesCommitted(ModelStore):
    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        if row is not None and row.state is State.COMMITTED:
            row = row._replace(state=State.CLAIMED)
        return super().take_over(row, seen, bid)


class TakesUnknown(ModelStore):
    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        if row is not None and row.state is State.UNKNOWN:
            row = row._replace(state=State.RELEASED)
        return super().take_over(row, seen, bid)


class TakeOverChangesTheRequest(ModelStore):
    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        after, granted = super().take_over(row, seen, bid)
        if after is not None and after != row:
            after = after._replace(fingerprint="B" if after.fingerprint == "A" else "A")
        return after, granted


class TakeOverDropsHold(ModelStore):
    def take_over(self, row: Row | None, seen: int, bid: Bid) -> tuple[Row | None, bool]:
        return super().take_over(row, seen, bid._replace(hold=False))


class CompletesStandingClaims(ModelStore):
    def may_complete(self, row: Row, bid: Bid) -> bool:
        return super().may_complete(row._replace(lease=False), bid)


class CompletesOtherRequests(ModelStore):
    def may_complete(self, row: Row, bid: Bid) -> bool:
        return super().may_complete(row._replace(fingerprint=bid.fingerprint), bid)


class CompletesHeldClaims(ModelStore):
    def may_complete(self, row: Row, bid: Bid) -> bool:
        return super().may_complete(row._replace(hold=False), bid)


class CompletesCommitted(ModelStore):
    def may_complete(self, row: Row, bid: Bid) -> bool:
        another = row.state is State.COMMITTED and row.token != bid.token
        return super().may_complete(row._replace(state=State.CLAIMED) if another else row, bid)


class CompletesFinished(ModelStore):
    def may_complete(self, row: Row, bid: Bid) -> bool:
        finished = row.outcome is not None and row.fingerprint == bid.fingerprint
        return finished or super().may_complete(row, bid)


class CompletesOnlyInTime(ModelStore):
    def may_complete(self, row: Row, bid: Bid) -> bool:
        return super().may_complete(row, bid) and (row.token != bid.token or row.lease)


class ReleasesAnothers(ModelStore):
    def owns(self, row: Row | None, token: int) -> bool:
        return row is not None and row.state in OWNED

    def renew(self, row: Row | None, token: int) -> tuple[Row | None, bool]:
        return super().renew(row, token) if row is not None and row.token == token else (row, False)


class RenewsAnothers(ModelStore):
    def renew(self, row: Row | None, token: int) -> tuple[Row | None, bool]:
        return super().renew(row, token if row is None else row.token)


class RenewsForEver(ModelStore):
    def renew(self, row: Row | None, token: int) -> tuple[Row | None, bool]:
        if row is None or not self.owns(row, token):
            return row, False
        return row._replace(lease=True), True


class ReleasesCommitted(ModelStore):
    def release(self, row: Row | None, token: int, to: ReleaseTo) -> tuple[Row | None, bool]:
        if row is not None and row.state is State.COMMITTED:
            row = row._replace(state=State.CLAIMED)
        return super().release(row, token, to)


class ReleaseKeepsExpiry(ModelStore):
    def release(self, row: Row | None, token: int, to: ReleaseTo) -> tuple[Row | None, bool]:
        after, owned = super().release(row, token, to)
        past = row is not None and row.past
        return (after._replace(past=past) if after is not None and after != row else after), owned


class UnknownWithoutHold(ModelStore):
    def release(self, row: Row | None, token: int, to: ReleaseTo) -> tuple[Row | None, bool]:
        after, owned = super().release(row, token, to)
        return (after if after is None else after._replace(hold=False)), owned


class JoinsLate(ModelStore):
    def join(self, row: Row | None, token: int) -> tuple[Row | None, Joined]:
        return super().join(row, token if row is None else row.token)


class JoinsTwice(ModelStore):
    def join(self, row: Row | None, token: int) -> tuple[Row | None, Joined]:
        after, joined = super().join(row, token)
        return after, "joined" if joined == "already" else joined


class JoinsReleased(ModelStore):
    def join(self, row: Row | None, token: int) -> tuple[Row | None, Joined]:
        if row is not None and row.state in (State.RELEASED, State.UNKNOWN):
            row = row._replace(state=State.CLAIMED, token=token)
        return super().join(row, token)


class JoinKeepsHold(ModelStore):
    def join(self, row: Row | None, token: int) -> tuple[Row | None, Joined]:
        after, joined = super().join(row, token)
        if row is not None and after is not None:
            after = after._replace(hold=row.hold)
        return after, joined


class ResolvesStandingClaims(ModelStore):
    def open_to_verdicts(self, row: Row) -> bool:
        return super().open_to_verdicts(row._replace(lease=False))


class ResolvesFinished(ModelStore):
    def open_to_verdicts(self, row: Row) -> bool:
        return row.outcome is not None or super().open_to_verdicts(row)


class ResolvesNothingCommitted(ModelStore):
    def open_to_verdicts(self, row: Row) -> bool:
        return row.state is not State.COMMITTED and super().open_to_verdicts(row)


class ResolveFreesCommitted(ModelStore):
    def may_be_cleared(self, row: Row) -> bool:
        return True


class VerdictKeepsToken(ModelStore):
    def token_of_verdict(self, seen: int) -> int:
        return seen


class VerdictKeepsTokenForOutcomes(VerdictKeepsToken):
    """And `complete` takes a finished record with the caller's token for the caller's own outcome."""

    def complete(self, row: Row | None, bid: Bid, outcome: Made) -> tuple[Row | None, bool]:
        after, stored = super().complete(row, bid, outcome)
        return after, stored or (after is not None and after.token == bid.token)


class SweepsWithoutLooking(ModelStore):
    def sweep(self, row: Row | None) -> Row | None:
        return None


class SweepsHeld(ModelStore):
    def sweepable(self, row: Row) -> bool:
        return super().sweepable(row._replace(hold=False))

    def sweep(self, row: Row | None) -> Row | None:
        return None if row is not None and self.sweepable(row) else row
