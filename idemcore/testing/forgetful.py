"""A store that remembers nothing: every claim is the first one, so every call runs."""

# ruff: noqa: ARG002 - whoever keeps nothing looks at nothing

from __future__ import annotations

from typing import NamedTuple

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Found, Record, State, Stored, Swept, Tombstone
from idemcore.stores.base import ReleaseTo, Verdict


class _Ended(NamedTuple):
    """A transaction that nobody has to wait for."""

    is_active: bool = False


class ForgetfulStore:
    """Takes the place of a store in tests that are not about idempotency; never use it for anything else."""

    def reserve(self, claim: Claim) -> None:
        """Grants every claim."""

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        """Nothing is there to be taken over."""
        return False

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored:
        """Says that it is stored, and forgets it."""
        return Stored()

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        """Nothing is there to be released, which counts as done."""
        return True

    def renew(self, claim: Claim) -> float:
        """Grants every renewal; `lease` seconds remain."""
        return claim.lease

    def join(self, place: object, claim: Claim, joined: object = None) -> _Ended:
        """Leaves the caller's transaction alone."""
        return _Ended()

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        """Nothing is there to be resolved."""
        return False

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        """Nothing is there, which counts as done."""
        return True

    def get(self, identity: Identity) -> Record | None:
        """Nothing is there."""
        return None

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
        """Nothing is there."""
        return []

    def sweep(self, limit: int) -> Swept:
        """Nothing is there."""
        return Swept(0, 0)

    def create_schema(self) -> None:
        """Nothing to make."""

    def check(self) -> None:
        """Nothing to check."""

    def close(self) -> None:
        """Nothing to close."""
