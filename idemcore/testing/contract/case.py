"""What every contract test stands on: a fresh store, a way to move time, and the records it uses.

Time is never slept for: a back end says in `age` how to make a record older. Durations are far apart
(a lease of 30 seconds, a day of retention), so a slow machine changes no verdict.
"""

from __future__ import annotations

from typing import ClassVar, Final

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Tombstone, UnreadableRecord
from idemcore.stores.base import ReleaseTo, Store

LEASE: Final = 30.0
MAX_HOLD: Final = 600.0
RETENTION: Final = 86_400.0
LONG_AFTER: Final = 2 * (MAX_HOLD + RETENTION)

ONE: Final = Identity("tenant", "charge", "k-1")
TWO: Final = Identity("tenant", "charge", "k-2")
TEN_EUROS: Final = "v1.test:10"
OTHER_AMOUNT: Final = "v1.test:10000"
A, B, C = (letter * 16 for letter in (b"A", b"B", b"C"))

ANSWER: Final = Answer("http", b'{"status":201}', b'{"b":1, "a":1.50}\n\x00\xff')
OTHER_ANSWER: Final = Answer("returned", b"", b"other")
RELEASES: Final[tuple[ReleaseTo, ...]] = ("released", "unknown", "deleted")
TOO_LARGE: Final = Tombstone("too_large")


def claim(
    token: bytes = A,
    identity: Identity = ONE,
    *,
    fingerprint: str = TEN_EUROS,
    attempt: int = 1,
    lease: float = LEASE,
    max_hold: float = MAX_HOLD,
    retention: float = RETENTION,
    hold: bool = False,
) -> Claim:
    """A claim that differs from the usual one in what the test is about."""
    return Claim(identity, fingerprint, token, attempt, lease, max_hold, retention, hold)


class ContractCase:
    """One test of the contract; `setup_method` and `teardown_method` are pytest's names for it.

    Attributes:
        store: the store under test, empty.
    """

    store: Store

    expires_by_itself: ClassVar[bool] = False
    """Whether a record goes at the end of its retention without a sweep, and `age` makes it go so. A claim
    that nobody finished is counted by the sweep all the same.
    """

    def open_store(self) -> Store:
        """Opens a store with no records in it; its schema is made by the suite."""
        raise NotImplementedError

    def age(self, identity: Identity, seconds: float) -> None:
        """Makes a record read as if this much more time had passed; other records may age with it."""
        raise NotImplementedError

    def setup_method(self) -> None:
        """Opens the store."""
        self.store = self.open_store()
        self.store.create_schema()

    def teardown_method(self) -> None:
        """Closes the store."""
        self.store.close()

    def record(self, identity: Identity = ONE) -> Record:
        """The record, which must be there and readable."""
        record = self.store.get(identity)
        assert isinstance(record, Record), record  # noqa: S101 - a test asks so
        return record

    def begin(self, made: Claim) -> Claim:
        """Reserves a claim that nothing stands in the way of."""
        assert self.store.reserve(made) is None  # noqa: S101 - a test asks so
        return made

    def abandon(self, made: Claim, seconds: float = LEASE + 1) -> Claim:
        """Reserves a claim and lets its lease pass."""
        self.begin(made)
        self.age(made.identity, seconds)
        return made

    def is_dead(self, identity: Identity = ONE) -> bool:
        """Whether a record is forgettable, or has gone because it was."""
        if self.expires_by_itself and self.store.get(identity) is None:
            return True
        return self.record(identity).forgettable

    def states(self) -> dict[Identity, State | None]:
        """Every record's state; None for one that cannot be read."""
        return {
            found.identity: None if isinstance(found.record, UnreadableRecord) else found.record.state
            for found in self.store.find(limit=1000)
        }
