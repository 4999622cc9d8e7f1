"""Contract tests of how a claim ends: complete and release."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

import time

from idemcore.record import Record, State, Stored, Superseded, Tombstone
from idemcore.testing.contract.case import (
    ANSWER,
    LEASE,
    LONG_AFTER,
    MAX_HOLD,
    ONE,
    OTHER_AMOUNT,
    OTHER_ANSWER,
    RELEASES,
    RETENTION,
    TEN_EUROS,
    TOO_LARGE,
    TWO,
    A,
    B,
    ContractCase,
    claim,
)


class OutcomeContract(ContractCase):
    """What is recorded, by whom, and what a late or repeated word does."""

    def test_an_answer_comes_back_byte_for_byte(self) -> None:
        """REP-06: kind, meta and body are kept as they were given, and the time of it with them."""
        assert self.store.complete(self.begin(claim(A)), ANSWER) == Stored()
        record = self.record()
        assert (record.state, record.answer, record.token, record.attempt) == (State.COMPLETED, ANSWER, A, 1)
        assert (record.fingerprint, record.hold, record.reason) == (TEN_EUROS, False, "")
        assert record.completed_at is not None
        assert isinstance(record.completed_at, float)
        assert not record.lease_stands

    def test_an_empty_answer_is_an_answer(self) -> None:
        """FUN-02: nothing in meta and body is still a completed record."""
        empty = ANSWER._replace(meta=b"", body=b"")
        self.store.complete(self.begin(claim(A)), empty)
        assert self.record().answer == empty
        assert self.store.complete(claim(A), empty) == Stored()

    def test_a_large_body_comes_back_whole(self) -> None:
        """SQL-06: neither cut nor refused at the sizes of small column types."""
        large = ANSWER._replace(body=bytes(range(256)) * 1024)
        self.store.complete(self.begin(claim(A)), large)
        assert self.record().answer == large

    def test_a_tombstone_keeps_its_reason(self) -> None:
        """Done without an answer is recorded as that."""
        assert self.store.complete(self.begin(claim(A)), TOO_LARGE) == Stored()
        record = self.record()
        assert (record.state, record.reason, record.answer) == (State.TOMBSTONE, "too_large", None)
        assert record.completed_at is not None

    def test_completed_at_is_the_time_of_day(self) -> None:
        """Seconds since the epoch, near enough to this machine's own."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        completed_at = self.record().completed_at
        assert completed_at is not None
        assert abs(completed_at - time.time()) < 86_400

    def test_a_repeated_complete_changes_nothing(self) -> None:
        """RAC-04: the same outcome sent again is stored once and reported as stored."""
        for identity, outcome in ((ONE, ANSWER), (TWO, TOO_LARGE)):
            made = self.begin(claim(A, identity))
            assert self.store.complete(made, outcome) == Stored()
            before = self.record(identity)
            assert self.store.complete(made, outcome) == Stored()
            after = self.record(identity)
            assert (after.answer, after.reason) == (before.answer, before.reason)
            assert after.completed_at == before.completed_at

    def test_another_outcome_under_the_same_token_does_not_replace_the_first(self) -> None:
        """What is finished stays, whoever says otherwise: the writer is told what stands."""
        made = self.begin(claim(A))
        self.store.complete(made, ANSWER)
        result = self.store.complete(made, OTHER_ANSWER)
        assert isinstance(result, Superseded)
        assert isinstance(result.record, Record)
        assert result.record.answer == ANSWER

    def test_an_owner_completes_after_its_lease(self) -> None:
        """Slow is not wrong while nobody else has claimed it."""
        assert self.store.complete(self.abandon(claim(A)), ANSWER) == Stored()
        assert self.record().answer == ANSWER

    def test_a_late_owner_is_superseded_while_the_next_one_runs(self) -> None:
        """LEA-03: after a takeover the first owner's outcome is refused, and it sees who has the claim."""
        late = self.abandon(claim(A))
        assert self.store.take_over(A, claim(B, attempt=2))
        result = self.store.complete(late, ANSWER)
        assert isinstance(result, Superseded)
        assert isinstance(result.record, Record)
        assert (result.record.state, result.record.token) == (State.CLAIMED, B)
        assert self.store.complete(claim(B, attempt=2), OTHER_ANSWER) == Stored()
        assert self.record().answer == OTHER_ANSWER

    def test_a_late_owner_is_superseded_by_the_winners_answer(self) -> None:
        """LEA-03: and after the winner has finished, the late one is given the winner's answer."""
        late = self.abandon(claim(A))
        assert self.store.take_over(A, claim(B, attempt=2))
        self.store.complete(claim(B, attempt=2), OTHER_ANSWER)
        result = self.store.complete(late, ANSWER)
        assert isinstance(result, Superseded)
        assert isinstance(result.record, Record)
        assert result.record.answer == OTHER_ANSWER

    def test_a_late_owner_completes_what_the_next_one_gave_up(self) -> None:
        """The same request, released or abandoned by its second run: the first run's outcome is true."""
        for identity, given_up in ((ONE, "released"), (TWO, "abandoned")):
            late = self.abandon(claim(A, identity))
            second = claim(B, identity, attempt=2)
            assert self.store.take_over(A, second)
            if given_up == "released":
                assert self.store.release(second, "released")
            self.age(identity, LEASE + 1)
            assert self.store.complete(late, ANSWER) == Stored()
            record = self.record(identity)
            assert (record.state, record.token, record.attempt) == (State.COMPLETED, A, 1)
            assert isinstance(self.store.complete(second, OTHER_ANSWER), Superseded)

    def test_another_requests_outcome_is_never_recorded_here(self) -> None:
        """With another fingerprint nothing is adopted, however free the record is."""
        self.store.release(self.begin(claim(A)), "released")
        assert isinstance(self.store.complete(claim(B, fingerprint=OTHER_AMOUNT), ANSWER), Superseded)
        self.abandon(claim(A, TWO))
        other = claim(B, TWO, fingerprint=OTHER_AMOUNT)
        assert isinstance(self.store.complete(other, ANSWER), Superseded)

    def test_a_claim_on_hold_is_completed_by_its_own_token_only(self) -> None:
        """Under block an operator waits for that run's word, not for another's."""
        self.abandon(claim(A, hold=True))
        assert isinstance(self.store.complete(claim(B), ANSWER), Superseded)
        assert self.store.complete(claim(A, hold=True), ANSWER) == Stored()
        assert self.record().hold is False

    def test_an_unknown_outcome_is_completed_by_its_own_token_only(self) -> None:
        """The run that was in doubt may still find out; nobody else may."""
        made = self.begin(claim(A))
        assert self.store.release(made, "unknown", "timeout")
        assert isinstance(self.store.complete(claim(B), ANSWER), Superseded)
        assert self.store.complete(made, ANSWER) == Stored()
        assert self.record().hold is False

    def test_complete_inserts_where_nothing_is_left(self) -> None:
        """SWE-03: work that is done is recorded even where its claim has been swept or forgotten."""
        assert self.store.complete(claim(A, attempt=3), ANSWER) == Stored()
        record = self.record()
        assert (record.state, record.token, record.attempt, record.answer) == (State.COMPLETED, A, 3, ANSWER)
        assert not record.past_retention
        self.age(ONE, LONG_AFTER)
        assert self.store.complete(claim(B, fingerprint=OTHER_AMOUNT), OTHER_ANSWER) == Stored()
        assert (self.record().fingerprint, self.record().answer) == (OTHER_AMOUNT, OTHER_ANSWER)

    def test_retention_counts_from_completion(self) -> None:
        """SWE-03: however long the run took, its outcome is kept for the whole retention."""
        self.abandon(claim(A), MAX_HOLD + RETENTION - 100)
        self.store.complete(claim(A), ANSWER)
        self.age(ONE, RETENTION - 100)
        assert not self.record().past_retention
        self.age(ONE, MAX_HOLD + 200)
        assert self.is_dead()

    def test_release_frees_the_claim_for_the_same_request(self) -> None:
        """Fingerprint and attempt number stay, hold goes, the lease ends at once."""
        made = self.begin(claim(A, attempt=2, hold=True))
        assert self.store.release(made, "released")
        record = self.record()
        assert (record.state, record.fingerprint, record.attempt) == (State.RELEASED, TEN_EUROS, 2)
        assert (record.hold, record.lease_stands) == (False, False)
        assert record.lease_left <= 0

    def test_release_to_unknown_holds_the_record_with_its_reason(self) -> None:
        """In doubt: kept until somebody resolves it, past retention too."""
        assert self.store.release(self.begin(claim(A)), "unknown", "gateway timeout")
        record = self.record()
        assert (record.state, record.hold, record.reason) == (State.UNKNOWN, True, "gateway timeout")
        self.age(ONE, LONG_AFTER)
        assert not self.record().forgettable

    def test_release_to_deleted_forgets_the_record(self) -> None:
        """The key is free for any request."""
        assert self.store.release(self.begin(claim(A)), "deleted")
        assert self.store.get(ONE) is None
        assert self.store.reserve(claim(B, fingerprint=OTHER_AMOUNT)) is None

    def test_a_repeated_release_finds_its_work_done(self) -> None:
        """RAC-04: each way of giving up may be sent twice; both times it says yes."""
        for to in RELEASES:
            made = claim(A, ONE._replace(key=to))
            self.begin(made)
            assert self.store.release(made, to, "why")
            assert self.store.release(made, to, "why")

    def test_release_is_for_the_owner_only(self) -> None:
        """LEA-03: a late owner frees neither the next claim nor its outcome."""
        late = self.abandon(claim(A))
        second = claim(B, attempt=2)
        assert self.store.take_over(A, second)
        for to in RELEASES:
            assert not self.store.release(late, to)
        assert self.record().lease_stands
        self.store.complete(second, ANSWER)
        for made in (late, second):
            assert not self.store.release(made, "released")
            assert not self.store.release(made, "deleted")
        assert self.record().answer == ANSWER

    def test_settled_failures_are_kept_for_the_whole_retention(self) -> None:
        """SWE-03: a run that outlived its lease and then failed is not purged at once."""
        for identity, to in zip((ONE, TWO), RELEASES[:2], strict=True):
            made = self.abandon(claim(A, identity), MAX_HOLD + RETENTION - 100)
            assert self.store.release(made, to)
            self.age(identity, RETENTION - 100)
            assert not self.record(identity).past_retention

    def test_a_reason_of_the_callers_is_kept_as_it_is(self) -> None:
        """Any text, of any length that a person writes."""
        reason = "zeitüberschreitung: 'x' %s " + "y" * 500
        self.store.complete(self.begin(claim(A)), Tombstone(reason))
        assert self.record().reason == reason
