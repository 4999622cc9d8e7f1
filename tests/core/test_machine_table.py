"""The decision table, written down a second time, and compared with the machine over all small records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

from idemcore.machine import (
    Busy,
    Decision,
    Incomparable,
    Mismatch,
    NotReplayable,
    OutcomeUnknown,
    PlainFingerprint,
    Replayable,
    Reserve,
    Run,
    TakeOver,
    Unreadable,
    decide,
)
from idemcore.policy import OnAbandoned, OnMismatch, Policy
from idemcore.record import Answer, Record, State, UnreadableRecord

ME, OTHER = b"me", b"other"
MINE = "v1.exact:aa"
TOMBSTONE, COMMITTED, COMPLETED = State.TOMBSTONE, State.COMMITTED, State.COMPLETED
CLAIMED, RELEASED, UNKNOWN = State.CLAIMED, State.RELEASED, State.UNKNOWN


class Case(NamedTuple):
    """A record that is there and can be read, and a policy; in the words of the table."""

    record: Record
    policy: Policy

    @property
    def state(self) -> State:
        return self.record.state

    @property
    def stands(self) -> bool:
        """The lease stands."""
        return self.record.state in (CLAIMED, COMMITTED) and self.record.lease_left > 0

    @property
    def forgettable(self) -> bool:
        return self.record.past_retention and not self.stands and not self.record.hold

    @property
    def incomparable(self) -> bool:
        return not self.record.fingerprint.startswith("v1.exact:")

    @property
    def differs(self) -> bool:
        return self.record.fingerprint != MINE

    @property
    def refuses(self) -> bool:
        return self.policy.on_mismatch == "refuse"

    @property
    def mine(self) -> bool:
        return self.record.token == ME

    @property
    def abandoned(self) -> bool:
        """Claimed, lease over."""
        return self.state == CLAIMED and not self.stands

    @property
    def blocks(self) -> bool:
        return self.policy.on_abandoned == "block"


Condition = Callable[[Case], bool]
Meaning = Callable[[Case], Decision]

TABLE: list[tuple[str, Condition, Meaning]] = [
    ("2", lambda c: c.forgettable, lambda c: Reserve()),
    ("3", lambda c: c.incomparable, lambda c: Incomparable()),
    ("4", lambda c: c.differs and c.refuses, lambda c: Mismatch()),
    ("5", lambda c: c.state == COMPLETED, lambda c: Replayable(c.record)),
    ("6", lambda c: c.state == TOMBSTONE, lambda c: NotReplayable(c.record.reason, final=True)),
    (
        "6",
        lambda c: c.state == COMMITTED and not c.stands,
        lambda c: NotReplayable("answer_pending", final=False),
    ),
    ("7a", lambda c: c.stands and c.mine, lambda c: Run(c.record.attempt)),
    ("7b", lambda c: c.abandoned and c.mine, lambda c: TakeOver(ME, c.record.attempt)),
    ("8", lambda c: c.stands, lambda c: Busy(c.record.age, c.record.lease_left)),
    ("9", lambda c: (c.state == RELEASED or c.abandoned) and c.differs, lambda c: Mismatch()),
    ("10", lambda c: c.state == UNKNOWN, lambda c: OutcomeUnknown(c.record.reason)),
    ("10", lambda c: c.abandoned and c.record.hold, lambda c: OutcomeUnknown("abandoned")),
    ("11", lambda c: c.abandoned and c.blocks, lambda c: OutcomeUnknown("abandoned")),
    (
        "12",
        lambda c: c.state == RELEASED or c.abandoned,
        lambda c: TakeOver(c.record.token, c.record.attempt + 1),
    ),
]


def read(case: Case) -> tuple[str, Decision]:
    """The first row that matches."""
    return next((row, meaning(case)) for row, condition, meaning in TABLE if condition(case))


def policies() -> Iterator[Policy]:
    mismatches: tuple[OnMismatch, ...] = ("refuse", "ignore")
    abandoned: tuple[OnAbandoned, ...] = ("rerun", "block")
    for on_mismatch, on_abandoned in product(mismatches, abandoned):
        yield Policy(on_mismatch=on_mismatch, on_abandoned=on_abandoned)


def records() -> Iterator[Record]:
    """Every record with small values, those that no store would report included."""
    for state, fingerprint, token, attempt, hold, left, past in product(
        State,
        (MINE, "v1.exact:bb", "v0.exact:aa"),
        (ME, OTHER),
        (1, 2, 3),
        (False, True),
        (9.0, 0.0, -9.0),
        (False, True),
    ):
        answer = Answer("returned", b"", b"10") if state is COMPLETED else None
        yield Record(state, fingerprint, token, attempt, hold, 3.0, left, past, answer, f"because {state}")


def test_the_machine_is_the_table_on_every_small_record() -> None:
    """No record and policy makes it raise, and each gets what the first matching row says."""
    rows: Counter[str] = Counter()
    for record, policy in product(records(), policies()):
        row, expected = read(Case(record, policy))
        assert decide(record, PlainFingerprint(MINE), policy, ME) == expected, (row, record[:], policy)
        rows[row] += 1
    assert set(rows) == {row for row, _, _ in TABLE}


def test_the_machine_is_the_table_where_no_record_can_be_read() -> None:
    """Row 1, and the part of row 2 that needs no record."""
    for policy in policies():
        assert decide(UnreadableRecord("damaged"), PlainFingerprint(MINE), policy, ME) == Unreadable("damaged")
        assert decide(None, PlainFingerprint(MINE), policy, ME) == Reserve()
