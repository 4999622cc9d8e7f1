"""Contract tests of an operator's verdict: resolve."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

from idemcore.record import Record, State, Stored, Superseded
from idemcore.stores.base import Verdict
from idemcore.testing.contract.case import (
    ANSWER,
    LEASE,
    LONG_AFTER,
    ONE,
    OTHER_AMOUNT,
    OTHER_ANSWER,
    RETENTION,
    TEN_EUROS,
    TOO_LARGE,
    TWO,
    A,
    B,
    ContractCase,
    claim,
)


class VerdictContract(ContractCase):
    """Only what is in doubt is resolved, and only while it is what the operator saw."""

    def in_doubt(self) -> None:
        """ONE is unknown, TWO is abandoned under block; both are attempt 2."""
        self.begin(claim(A, attempt=2))
        assert self.store.release(claim(A, attempt=2), "unknown", "timeout")
        self.abandon(claim(A, TWO, attempt=2, hold=True))

    def test_resolved_as_completed_it_replays_the_operators_answer(self) -> None:
        """Hold goes; fingerprint and attempt number stay; the token is nobody's any more."""
        self.in_doubt()
        for identity in (ONE, TWO):
            assert self.store.resolve(identity, A, ANSWER, RETENTION)
            record = self.record(identity)
            assert (record.state, record.answer, record.reason) == (State.COMPLETED, ANSWER, "")
            assert (record.hold, record.attempt, record.fingerprint) == (False, 2, TEN_EUROS)
            assert record.token not in (A, B)
            assert record.completed_at is not None

    def test_resolved_as_done_without_answer_it_is_a_tombstone(self) -> None:
        """The operator knows that it was done and has no answer."""
        self.in_doubt()
        for identity in (ONE, TWO):
            assert self.store.resolve(identity, A, TOO_LARGE, RETENTION)
            record = self.record(identity)
            assert (record.state, record.reason, record.hold) == (State.TOMBSTONE, "too_large", False)

    def test_resolved_as_not_done_it_may_run_again(self) -> None:
        """Released: the same request takes it over with the next attempt number."""
        self.in_doubt()
        for identity in (ONE, TWO):
            assert self.store.resolve(identity, A, "released", RETENTION)
            record = self.record(identity)
            assert (record.state, record.hold, record.reason) == (State.RELEASED, False, "")
            assert record.completed_at is None
            assert not self.store.take_over(A, claim(B, identity, attempt=3))
            assert self.store.take_over(record.token, claim(B, identity, attempt=3))

    def test_a_verdict_is_kept_for_the_whole_retention(self) -> None:
        """An operator who comes late decides for a full retention from now."""
        verdicts: tuple[Verdict, ...] = (ANSWER, "released")
        for identity, verdict in zip((ONE, TWO), verdicts, strict=True):
            self.abandon(claim(A, identity, hold=True), LONG_AFTER)
            assert self.store.resolve(identity, A, verdict, RETENTION)
            self.age(identity, RETENTION - 100)
            assert not self.record(identity).past_retention
            self.age(identity, LONG_AFTER)
            assert self.is_dead(identity)

    def test_a_repeated_verdict_finds_its_work_done(self) -> None:
        """The same verdict twice is one verdict; another one afterwards is refused."""
        verdicts: tuple[Verdict, ...] = ("released", ANSWER, TOO_LARGE)
        others: tuple[Verdict, ...] = (ANSWER, TOO_LARGE, ANSWER)
        for verdict, other in zip(verdicts, others, strict=True):
            identity = ONE._replace(key=str(verdict))
            self.abandon(claim(A, identity))
            assert self.store.resolve(identity, A, verdict, RETENTION)
            assert self.store.resolve(identity, A, verdict, RETENTION)
            assert not self.store.resolve(identity, A, other, RETENTION)

    def test_a_verdict_on_another_token_is_refused(self) -> None:
        """The record has moved on since the operator looked."""
        self.in_doubt()
        assert not self.store.resolve(ONE, B, ANSWER, RETENTION)
        assert not self.store.resolve(ONE._replace(key="none"), A, ANSWER, RETENTION)
        assert self.record().state is State.UNKNOWN

    def test_a_running_claim_cannot_be_resolved(self) -> None:
        """Its owner is alive; nor can what is finished be judged again, or what is released be released."""
        self.begin(claim(A))
        assert not self.store.resolve(ONE, A, "released", RETENTION)
        self.store.complete(claim(A), ANSWER)
        assert not self.store.resolve(ONE, A, "released", RETENTION)
        assert not self.store.resolve(ONE, A, TOO_LARGE, RETENTION)
        self.store.release(self.begin(claim(A, TWO)), "released")
        assert not self.store.resolve(TWO, A, "released", RETENTION)
        assert self.record(TWO).token == A

    def test_what_is_released_is_closed_before_a_retry_comes(self) -> None:
        """By its own run or by a verdict that was wrong: the work was done, and nobody runs it again."""
        self.in_doubt()
        assert self.store.resolve(ONE, A, "released", RETENTION)
        three = ONE._replace(key="three")
        assert self.store.release(self.begin(claim(A, three, attempt=2)), "released")
        for identity, outcome in ((ONE, TOO_LARGE), (three, ANSWER)):
            seen = self.record(identity).token
            assert not self.store.resolve(identity, B, outcome, RETENTION)
            assert self.store.resolve(identity, seen, outcome, RETENTION)
            assert self.store.resolve(identity, seen, outcome, RETENTION)
            record = self.record(identity)
            finished = State.COMPLETED if outcome is ANSWER else State.TOMBSTONE
            assert (record.state, record.attempt, record.fingerprint) == (finished, 2, TEN_EUROS)
            assert record.completed_at is not None
            assert record.token not in (A, B, seen)
            assert not self.store.take_over(seen, claim(B, identity, attempt=3))
            self.age(identity, RETENTION - 100)
            assert not self.record(identity).past_retention

    def test_a_retry_that_came_first_keeps_what_was_released(self) -> None:
        """It runs, so nobody says meanwhile how it ends."""
        self.store.release(self.begin(claim(A)), "released")
        assert self.store.take_over(A, claim(B, attempt=2))
        assert not self.store.resolve(ONE, A, TOO_LARGE, RETENTION)
        assert not self.store.resolve(ONE, B, TOO_LARGE, RETENTION)
        assert isinstance(self.store.complete(claim(B, attempt=2), ANSWER), Stored)

    def test_a_late_owner_does_not_overwrite_a_verdict(self) -> None:
        """It is told what the operator recorded."""
        self.in_doubt()
        assert self.store.resolve(ONE, A, ANSWER, RETENTION)
        result = self.store.complete(claim(A, attempt=2), OTHER_ANSWER)
        assert isinstance(result, Superseded)
        assert isinstance(result.record, Record)
        assert result.record.answer == ANSWER

    def test_a_late_owner_may_still_record_what_the_operator_thought_not_done(self) -> None:
        """Released and not taken over yet: its answer is the truth, and nothing runs again."""
        self.in_doubt()
        assert self.store.resolve(ONE, A, "released", RETENTION)
        assert isinstance(self.store.complete(claim(A, attempt=2), ANSWER), Stored)
        assert self.record().answer == ANSWER

    def test_what_was_seen_after_a_verdict_takes_no_later_claim_over(self) -> None:
        """A caller whose acknowledgement got lost claims again under its own token after the verdict. Who
        saw the released record before that must not take the second claim over when its lease is over.
        """
        self.abandon(claim(A, hold=True))
        assert self.store.resolve(ONE, A, "released", RETENTION)
        seen = self.record().token
        assert self.store.take_over(seen, claim(A, attempt=2, hold=True))
        self.age(ONE, LEASE + 1)
        assert not self.store.take_over(seen, claim(B, attempt=2, hold=True))

    def test_forgetting_removes_what_nobody_works_on(self) -> None:
        """Finished, released, unknown, abandoned, on hold: gone, and the key may be used for anything."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        self.store.release(self.begin(claim(A, TWO)), "unknown", "timeout")
        for identity in (ONE, TWO):
            assert self.store.forget(identity, A)
            assert self.store.get(identity) is None
            assert self.store.forget(identity, A)
            assert self.store.reserve(claim(B, identity, fingerprint=OTHER_AMOUNT)) is None
        self.age(ONE, LEASE + 1)
        assert self.store.forget(ONE, B)

    def test_forgetting_touches_no_standing_claim_and_no_other_record(self) -> None:
        """Somebody works on it, or it is not what the operator saw."""
        self.begin(claim(A))
        assert not self.store.forget(ONE, A)
        assert not self.store.forget(ONE, B)
        assert self.record().lease_stands
        self.store.complete(self.begin(claim(A, TWO)), ANSWER)
        assert not self.store.forget(TWO, B)
        assert self.record(TWO).answer == ANSWER
