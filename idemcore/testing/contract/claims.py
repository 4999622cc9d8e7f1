"""Contract tests of claiming: reserve, take_over, renew."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

from idemcore.identity import Identity
from idemcore.record import Record, State
from idemcore.testing.contract.case import (
    ANSWER,
    LEASE,
    LONG_AFTER,
    MAX_HOLD,
    ONE,
    OTHER_AMOUNT,
    TEN_EUROS,
    TWO,
    A,
    B,
    C,
    ContractCase,
    claim,
)


class ClaimContract(ContractCase):
    """One owner at a time, and a lease that ends."""

    def test_the_first_reserve_inserts_and_the_second_reports(self) -> None:
        """A free identity is claimed once; whoever comes next is told who has it."""
        assert self.store.get(ONE) is None
        assert self.store.reserve(claim(A)) is None
        record = self.store.reserve(claim(B, fingerprint=OTHER_AMOUNT))
        assert isinstance(record, Record)
        assert (record.state, record.token, record.fingerprint) == (State.CLAIMED, A, TEN_EUROS)
        assert (record.attempt, record.hold, record.past_retention) == (1, False, False)
        assert (record.answer, record.reason, record.completed_at) == (None, "", None)
        assert 0 < record.lease_left <= LEASE
        assert 0 <= record.age < LEASE
        assert record.lease_stands

    def test_a_repeated_reserve_reports_the_callers_own_claim(self) -> None:
        """RAC-04: a reserve that is sent again after a lost acknowledgement finds its own token."""
        self.begin(claim(A))
        record = self.store.reserve(claim(A))
        assert isinstance(record, Record)
        assert (record.state, record.token) == (State.CLAIMED, A)

    def test_reserve_never_downgrades_a_finished_record(self) -> None:
        """RAC-02: reserving a completed key many times changes neither its state nor its answer."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        for _ in range(5):
            record = self.store.reserve(claim(B))
            assert isinstance(record, Record)
            assert (record.state, record.answer, record.token) == (State.COMPLETED, ANSWER, A)

    def test_reserve_never_takes_over(self) -> None:
        """LEA-02: neither a lease that is over nor a release makes reserve insert."""
        self.abandon(claim(A))
        record = self.store.reserve(claim(B))
        assert isinstance(record, Record)
        assert (record.token, record.lease_stands) == (A, False)
        self.store.release(claim(A), "released")
        record = self.store.reserve(claim(B))
        assert isinstance(record, Record)
        assert (record.state, record.token) == (State.RELEASED, A)

    def test_identities_that_differ_in_one_part_do_not_meet(self) -> None:
        """SQL-01, KEY-01, KEY-02: case, accents, spaces and lengths count, in every part."""
        texts = (
            "Req-A",
            "req-a",
            "req-a ",
            "réq-a",
            "re\u0301q-a",
            "x" * 128,
            "x" * 127 + "y",
            "%",
            "_",
            "'\"",
        )
        identities = [
            Identity(*parts)
            for text in texts
            for parts in ((text, "op", "k"), ("scope", text, "k"), ("scope", "op", text))
        ]
        for identity in identities:
            assert self.store.reserve(claim(A, identity)) is None
        for identity in identities:
            assert self.store.reserve(claim(B, identity)) is not None

    def test_keys_of_the_greatest_length_are_kept_whole(self) -> None:
        """KEY-07: two keys of 255 bytes that differ in the last one are two keys."""
        scope, operation = "s" * 128, "o" * 255
        for key in ("k" * 255, "k" * 254 + "l", "é" * 127, "é" * 126 + "e"):
            assert self.store.reserve(claim(A, Identity(scope, operation, key))) is None

    def test_a_forgettable_record_is_as_good_as_none(self) -> None:
        """Past retention a finished record is replaced as a whole, fingerprint and all."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        self.age(ONE, LONG_AFTER)
        assert self.is_dead()
        assert self.store.reserve(claim(B, fingerprint=OTHER_AMOUNT, hold=True)) is None
        record = self.record()
        assert (record.state, record.token, record.fingerprint) == (State.CLAIMED, B, OTHER_AMOUNT)
        assert (record.answer, record.completed_at, record.hold) == (None, None, True)

    def test_a_record_on_hold_is_never_forgettable(self) -> None:
        """What waits for an operator waits past retention too."""
        self.abandon(claim(A, hold=True), LONG_AFTER)
        record = self.store.reserve(claim(B))
        assert isinstance(record, Record)
        assert record.past_retention
        assert not record.forgettable

    def test_take_over_needs_the_lease_to_be_over(self) -> None:
        """LEA-01: a crashed owner blocks its key for a lease, not for the whole retention."""
        self.begin(claim(A))
        assert not self.store.take_over(A, claim(B, attempt=2))
        self.age(ONE, LEASE + 1)
        assert self.store.take_over(A, claim(B, attempt=2))
        record = self.record()
        assert (record.state, record.token, record.attempt) == (State.CLAIMED, B, 2)
        assert 0 < record.lease_left <= LEASE
        assert record.age < LEASE

    def test_take_over_keeps_the_fingerprint_and_takes_the_new_hold(self) -> None:
        """A takeover never turns ten euros into ten thousand."""
        self.abandon(claim(A))
        assert self.store.take_over(A, claim(B, attempt=2, fingerprint=OTHER_AMOUNT, hold=True))
        assert (self.record().fingerprint, self.record().hold) == (TEN_EUROS, True)

    def test_take_over_is_a_compare_and_set(self) -> None:
        """Of two that saw the same token, one takes over; the other is told so."""
        self.abandon(claim(A))
        assert self.store.take_over(A, claim(B, attempt=2))
        assert not self.store.take_over(A, claim(C, attempt=2))
        self.age(ONE, LEASE + 1)
        assert not self.store.take_over(A, claim(C, attempt=2))
        assert self.store.take_over(B, claim(C, attempt=3))

    def test_a_repeated_take_over_finds_its_work_done(self) -> None:
        """RAC-04: the same takeover sent twice is one takeover, and both calls say yes."""
        self.abandon(claim(A))
        assert self.store.take_over(A, claim(B, attempt=2))
        assert self.store.take_over(A, claim(B, attempt=2))
        assert self.record().attempt == 2

    def test_an_owner_whose_lease_ran_out_takes_its_own_claim_over(self) -> None:
        """Its own token, the same attempt: a late acknowledgement of reserve costs nobody the key."""
        self.abandon(claim(A, hold=True))
        assert self.store.take_over(A, claim(A, hold=True))
        assert self.record().lease_stands

    def test_take_over_of_a_released_record_needs_no_waiting(self) -> None:
        """A released claim is takeable at once, by whoever saw its token."""
        self.store.release(self.begin(claim(A)), "released")
        assert self.store.take_over(A, claim(B, attempt=2))

    def test_finished_and_unknown_records_are_never_taken_over(self) -> None:
        """Not even when their lease is long over."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        self.store.release(self.begin(claim(A, TWO)), "unknown", "timeout")
        for identity in (ONE, TWO):
            self.age(identity, LEASE + 1)
            assert not self.store.take_over(A, claim(B, identity, attempt=2))
        assert not self.store.take_over(A, claim(B, Identity("nobody", "op", "k"), attempt=2))

    def test_sub_second_leases_keep_their_length(self) -> None:
        """LEA-06: half a second is neither nothing nor for ever, whatever unit a back end counts in."""
        self.begin(claim(A, lease=10.5))
        self.age(ONE, 9.0)
        assert not self.store.take_over(A, claim(B, attempt=2))
        self.age(ONE, 1.75)
        assert self.store.take_over(A, claim(B, attempt=2))

    def test_renew_moves_the_lease(self) -> None:
        """LEA-04: a renewed claim stands past the end of its first lease."""
        self.begin(claim(A))
        self.age(ONE, LEASE - 5)
        left = self.store.renew(claim(A))
        assert left is not None
        assert LEASE - 5 < left <= LEASE
        self.age(ONE, LEASE - 5)
        assert not self.store.take_over(A, claim(B, attempt=2))

    def test_renew_revives_a_lease_that_nobody_took(self) -> None:
        """Late is not lost as long as the record still carries the owner's token."""
        self.abandon(claim(A))
        assert self.store.renew(claim(A)) is not None
        assert self.record().lease_stands

    def test_renew_stops_at_max_hold(self) -> None:
        """No renewal moves the lease past the start of the claim plus max_hold."""
        self.begin(claim(A))
        self.age(ONE, MAX_HOLD - 10)
        left = self.store.renew(claim(A))
        assert left is not None
        assert 0 < left <= 10
        self.age(ONE, 20)
        left = self.store.renew(claim(A))
        assert left is not None
        assert left <= 0
        assert not self.record().lease_stands

    def test_renew_tells_an_owner_that_it_lost_the_claim(self) -> None:
        """LEA-05: after a takeover, a finish, a release or with no record at all, renewal is refused."""
        assert self.store.renew(claim(A)) is None
        self.abandon(claim(A))
        assert self.store.take_over(A, claim(B, attempt=2))
        assert self.store.renew(claim(A)) is None
        assert self.store.renew(claim(B)) is not None
        self.store.complete(claim(B, attempt=2), ANSWER)
        assert self.store.renew(claim(B)) is None
        self.store.release(self.begin(claim(A, TWO)), "released")
        assert self.store.renew(claim(A, TWO)) is None
