"""Stores with one bug each, between the witness and a store that is right. The checker must find every one."""

from __future__ import annotations

import time
from typing import Any

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Stored, Superseded, Tombstone, UnreadableRecord
from idemcore.stores.base import ReleaseTo, Store

Reserved = Record | UnreadableRecord | None


class Faulty:
    """No bug yet."""

    finds: frozenset[str] = frozenset()
    """Rules of the checker's, of which one at the least must speak up."""

    claims: dict[bytes, Claim]

    def __init__(self, store: Store) -> None:
        self._store = store
        self.claims = _claims

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def reserve(self, claim: Claim) -> Reserved:
        self.claims[claim.token] = claim
        return self._store.reserve(claim)

    def standing(self, record: Reserved, claim: Claim) -> bool:
        return isinstance(record, Record) and record.lease_stands and record.token != claim.token


_claims: dict[bytes, Claim] = {}
"""Of all threads: a bug may act in another's name."""


class StealsStandingClaims(Faulty):
    finds = frozenset(("takeover of a standing claim", "two standing leases"))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        if not self.standing(record, claim):
            return record
        self._store.release(self.claims[record.token], "released")  # type: ignore[union-attr] # it stands
        return self._store.get(claim.identity)


class GrantsWhatIsTaken(Faulty):
    finds = frozenset(("claimed anew over a record", "two standing leases"))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        return None if self.standing(record, claim) else record


class ForgetsOutcomes(Faulty):
    finds = frozenset(("claimed after an outcome was stored", "lost outcome"))

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        result = self._store.complete(claim, outcome)
        self._store.forget(claim.identity, claim.token)
        return result


class SaysStoredAndStoresNothing(Faulty):
    finds = frozenset(("claimed after an outcome was stored", "lost outcome"))

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        return Stored()


class StoresOverOthers(Faulty):
    """A late run replaces the outcome of the one that took over."""

    finds = frozenset(("second outcome", "stale replay", "lost outcome"))

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        if claim.token[0] < 16:
            time.sleep(1.05 * claim.max_hold)  # so that there are late ones
        result = self._store.complete(claim, outcome)
        if isinstance(result, Superseded) and isinstance(result.record, Record) and result.record.answer:
            self._store.forget(claim.identity, result.record.token)
            return self._store.complete(claim, outcome)
        return result


class ReplaysAnothers(Faulty):
    finds = frozenset(("replay of what nobody stored",))
    last: Answer | None = None

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        if isinstance(record, Record) and record.state is State.COMPLETED:
            given, self.last = self.last, record.answer
            return record._replace(answer=given or record.answer)
        return record


class ReplaysToAnyRequest(Faulty):
    finds = frozenset(("replay to another request", "lost outcome"))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        if isinstance(record, Record) and record.state is State.COMPLETED:
            return record._replace(fingerprint=claim.fingerprint)
        return record


class ForgetsFingerprints(Faulty):
    """Another request takes over."""

    finds = frozenset(("takeover by another request",))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        if isinstance(record, Record) and not record.lease_stands and record.state is not State.COMPLETED:
            return record._replace(fingerprint=claim.fingerprint)
        return record


class IgnoresHold(Faulty):
    finds = frozenset(("takeover of what waits for an operator",))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        if isinstance(record, Record) and record.hold and not record.lease_stands:
            return record._replace(state=State.RELEASED, hold=False)
        return record


class TakesOverTwice(Faulty):
    finds = frozenset(("two takeovers of one claim", "two standing leases"))

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        time.sleep(0.02)  # so that another comes in between
        self._store.take_over(seen_token, claim)
        return True


class NeverEnds(Faulty):
    finds = frozenset(("stuck",))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        if isinstance(record, Record) and record.state is State.CLAIMED and not record.lease_stands:
            return record._replace(lease_left=1.0)
        return record


class UnknownMayRun(Faulty):
    finds = frozenset(("ran while unknown", "takeover of what waits for an operator"))

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        return self._store.release(claim, "released" if to == "unknown" else to, reason)


class SweepsLiveClaims(Faulty):
    finds = frozenset(("claimed anew over a record",))

    def sweep(self, limit: int) -> Any:
        for found in self._store.find(state=State.CLAIMED, limit=limit):
            if isinstance(found.record, Record) and found.record.token in self.claims:
                self._store.release(self.claims[found.record.token], "deleted")
        return self._store.sweep(limit)


class CountsWrong(Faulty):
    finds = frozenset(("takeover counts wrong",))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        return record._replace(attempt=1) if isinstance(record, Record) and record.attempt > 1 else record


class KeepsOldAnswers(Faulty):
    """What was replayed once is replayed for ever, whatever came after its retention."""

    finds = frozenset(("stale replay", "lost outcome"))

    def reserve(self, claim: Claim) -> Reserved:
        record = super().reserve(claim)
        old = _old.get(claim.identity)
        if isinstance(record, Record) and record.state is State.COMPLETED:
            return _old.setdefault(claim.identity, record)._replace(past_retention=False)
        return record if old is None or record is None else old


_old: dict[Identity, Record] = {}

FAULTS = Faulty.__subclasses__()
