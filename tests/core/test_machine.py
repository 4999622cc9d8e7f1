"""The decision table row by row, in its order, and which row wins where two could."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

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
    locked,
    tag_of,
)
from idemcore.policy import Policy
from idemcore.record import Answer, Record, State, UnreadableRecord

ME, OTHER = b"me", b"other"
SAME, DIFFERENT = "v1.exact:aa", "v1.exact:bb"
OLD_RULE, GONE_RULE = "v0.exact:aa", "v-1.exact:aa"

REFUSE, IGNORE = Policy(), Policy(on_mismatch="ignore")
BLOCK, IGNORE_BLOCK = Policy(on_abandoned="block"), Policy(on_mismatch="ignore", on_abandoned="block")
POLICIES = (REFUSE, IGNORE, BLOCK, IGNORE_BLOCK)

STANDS, OVER = 5.0, -1.0
ANSWER = Answer("returned", b"", b"10")


def stored(
    state: State,
    lease_left: float = OVER,
    *,
    fingerprint: str = SAME,
    token: bytes = OTHER,
    attempt: int = 1,
    hold: bool = False,
    past: bool = False,
) -> Record:
    """A record as a store reports it, made by somebody else for the same request unless told otherwise."""
    return Record(
        state,
        fingerprint,
        token,
        attempt,
        hold,
        age=7.0,
        lease_left=lease_left,
        past_retention=past,
        answer=ANSWER if state is State.COMPLETED else None,
        reason={State.TOMBSTONE: "too_large", State.UNKNOWN: "timeout"}.get(state, ""),
    )


def asked(record: Record | UnreadableRecord | None, policy: Policy = REFUSE, token: bytes = ME) -> Decision:
    """What the machine says to the request whose fingerprint is SAME."""
    return decide(record, PlainFingerprint(SAME), policy, token)


ABANDONED = stored(State.CLAIMED, OVER)


@pytest.mark.parametrize("policy", POLICIES)
def test_row_1_what_cannot_be_read_is_neither_run_nor_replayed(policy: Policy) -> None:
    """An unreadable record is left alone, whatever the policy says."""
    assert asked(UnreadableRecord("format 9"), policy) == Unreadable("format 9")


@pytest.mark.parametrize("policy", POLICIES)
def test_row_2_nothing_stands_in_the_way(policy: Policy) -> None:
    """Where there is no record a claim may be inserted."""
    assert asked(None, policy) == Reserve()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("fingerprint", [SAME, DIFFERENT, GONE_RULE])
@pytest.mark.parametrize("token", [ME, OTHER])
def test_row_2_a_forgettable_record_is_as_good_as_none(state: State, fingerprint: str, token: bytes) -> None:
    """Past retention, no standing lease, not on hold: its fingerprint does not matter, so row 2 is before 3."""
    record = stored(state, OVER, fingerprint=fingerprint, token=token, past=True)
    assert all(asked(record, policy) == Reserve() for policy in POLICIES)


def test_row_2_spares_what_is_on_hold_however_old() -> None:
    """What only an operator may settle is not forgotten: the effect may have happened."""
    assert asked(stored(State.UNKNOWN, hold=True, past=True)) == OutcomeUnknown("timeout")
    assert asked(stored(State.CLAIMED, OVER, hold=True, past=True)) == OutcomeUnknown("abandoned")


def test_row_2_spares_a_standing_lease() -> None:
    """A store never reports one past retention; if it did, the claim would still stand."""
    assert asked(stored(State.CLAIMED, STANDS, past=True)) == Busy(7.0, STANDS)
    assert asked(stored(State.COMMITTED, STANDS, past=True)) == Busy(7.0, STANDS)


def test_row_2_a_left_over_lease_of_a_settled_record_protects_nothing() -> None:
    """Only claimed and committed records have a lease; an old end time on another is noise."""
    for state in (State.RELEASED, State.COMPLETED, State.TOMBSTONE):
        assert asked(stored(state, STANDS, past=True)) == Reserve()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("lease_left", [STANDS, OVER])
def test_row_3_a_rule_that_is_gone_is_refused_before_anything_else(
    state: State, policy: Policy, lease_left: float
) -> None:
    """CAN-09: a fingerprint that cannot be compared is neither a match nor a mismatch, so row 3 is before 4."""
    assert asked(stored(state, lease_left, fingerprint=GONE_RULE), policy) == Incomparable()


def test_rows_3_and_4_an_older_rule_that_is_kept_still_tells_requests_apart() -> None:
    """CAN-09: within one retention after a change of rules, true retries replay and others are refused."""

    @dataclass
    class TwoRules:
        current: str
        older: str

        def under(self, tag: str) -> str | None:
            return {tag_of(self.current): self.current, tag_of(self.older): self.older}.get(tag)

    record = stored(State.COMPLETED, fingerprint=OLD_RULE)
    assert decide(record, TwoRules(SAME, OLD_RULE), REFUSE, ME) == Replayable(record)
    assert decide(record, TwoRules(SAME, "v0.exact:zz"), REFUSE, ME) == Mismatch()
    assert decide(record, TwoRules(SAME, "v0.other:aa"), REFUSE, ME) == Incomparable()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("lease_left", [STANDS, OVER])
@pytest.mark.parametrize("policy", [REFUSE, BLOCK])
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("token", [ME, OTHER])
def test_row_4_another_request_under_the_key_is_refused_whatever_became_of_the_first(
    state: State, lease_left: float, policy: Policy, hold: bool, token: bytes
) -> None:
    """KEY-05: released and abandoned records included, so a second amount never takes the first one's place."""
    record = stored(state, lease_left, fingerprint=DIFFERENT, hold=hold, token=token)
    assert asked(record, policy) == Mismatch()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("token", [ME, OTHER])
def test_row_5_a_completed_record_replays(policy: Policy, token: bytes) -> None:
    """A true retry gets the stored answer, and so does the owner itself."""
    record = stored(State.COMPLETED, token=token)
    assert asked(record, policy) == Replayable(record)


def test_row_5_ignoring_mismatches_replays_to_another_request_too() -> None:
    """``on_mismatch="ignore"`` is said aloud by the program: the key alone names the operation."""
    record = stored(State.COMPLETED, fingerprint=DIFFERENT)
    assert asked(record, IGNORE) == asked(record, IGNORE_BLOCK) == Replayable(record)


@pytest.mark.parametrize("policy", POLICIES)
def test_row_6_a_tombstone_is_done_for_good(policy: Policy) -> None:
    """The work is done and its answer is gone: neither run again nor invented."""
    assert asked(stored(State.TOMBSTONE), policy) == NotReplayable("too_large", final=True)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("token", [ME, OTHER])
def test_row_6_committed_with_its_lease_over_is_done_and_may_still_get_its_answer(
    policy: Policy, token: bytes
) -> None:
    """The caller's transaction was committed and its owner is late or dead: nothing runs, nothing is final."""
    assert asked(stored(State.COMMITTED, OVER, token=token), policy) == NotReplayable(
        "answer_pending", final=False
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("state", [State.CLAIMED, State.COMMITTED])
@pytest.mark.parametrize("attempt", [1, 4])
def test_row_7a_my_own_standing_claim_runs_under_its_number(policy: Policy, state: State, attempt: int) -> None:
    """RAC-04: a lost acknowledgement is not another caller."""
    assert asked(stored(state, STANDS, token=ME, attempt=attempt), policy) == Run(attempt)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("attempt", [1, 4])
def test_row_7b_my_own_lapsed_claim_is_claimed_again_as_the_same_attempt(
    policy: Policy, hold: bool, attempt: int
) -> None:
    """My code has not run, so nothing is in doubt: under block and on hold too, before rows 10 and 11."""
    record = stored(State.CLAIMED, OVER, token=ME, attempt=attempt, hold=hold)
    assert asked(record, policy) == TakeOver(ME, attempt)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("state", [State.CLAIMED, State.COMMITTED])
@pytest.mark.parametrize("hold", [False, True])
def test_row_8_a_standing_claim_is_busy(policy: Policy, state: State, hold: bool) -> None:
    """LEA-01: before the lease ends the same request is refused as in progress, with what it may wait for."""
    assert asked(stored(state, STANDS, hold=hold), policy) == Busy(7.0, STANDS)


def test_row_8_ignoring_mismatches_waits_for_the_other_request() -> None:
    """Under ``ignore`` the answer to come is the answer to this request too."""
    assert asked(stored(State.CLAIMED, STANDS, fingerprint=DIFFERENT), IGNORE) == Busy(7.0, STANDS)


@pytest.mark.parametrize("policy", [IGNORE, IGNORE_BLOCK])
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("state", [State.RELEASED, State.CLAIMED])
def test_row_9_ignoring_mismatches_never_lets_another_request_take_over(
    policy: Policy, hold: bool, state: State
) -> None:
    """A takeover runs code, and a record keeps the request that it was made for: before rows 10 to 12."""
    assert asked(stored(state, OVER, fingerprint=DIFFERENT, hold=hold), policy) == Mismatch()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("token", [ME, OTHER])
def test_row_10_an_unknown_outcome_waits_for_an_operator(policy: Policy, token: bytes) -> None:
    """Nobody can tell whether the work was done, the one who ran it included."""
    assert asked(stored(State.UNKNOWN, hold=True, token=token), policy) == OutcomeUnknown("timeout")


@pytest.mark.parametrize("policy", POLICIES)
def test_row_10_an_abandoned_claim_on_hold_waits_for_an_operator(policy: Policy) -> None:
    """The claim was made under block, which binds requests whose own policy is rerun."""
    assert asked(stored(State.CLAIMED, OVER, hold=True), policy) == OutcomeUnknown("abandoned")


def test_row_10_an_unknown_outcome_is_unknown_to_another_request_too() -> None:
    """Under ``ignore`` row 9 speaks of released and abandoned records alone."""
    record = stored(State.UNKNOWN, hold=True, fingerprint=DIFFERENT)
    assert asked(record, IGNORE) == OutcomeUnknown("timeout")


@pytest.mark.parametrize("policy", [BLOCK, IGNORE_BLOCK])
def test_row_11_under_block_an_abandoned_claim_waits_for_an_operator(policy: Policy) -> None:
    """This request's policy decides, although the claim was made under rerun."""
    assert asked(ABANDONED, policy) == OutcomeUnknown("abandoned")


@pytest.mark.parametrize("policy", [REFUSE, IGNORE])
@pytest.mark.parametrize("attempt", [1, 4])
def test_row_12_under_rerun_an_abandoned_claim_is_taken_over(policy: Policy, attempt: int) -> None:
    """LEA-01: a crash blocks its key for the lease, not for the retention; the attempt number tells of it."""
    record = stored(State.CLAIMED, OVER, attempt=attempt)
    assert asked(record, policy) == TakeOver(OTHER, attempt + 1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("token", [ME, OTHER])
def test_row_12_a_released_record_is_taken_over_at_once(policy: Policy, token: bytes) -> None:
    """Its run said that it may run again, so block has nothing to ask an operator."""
    assert asked(stored(State.RELEASED, token=token, attempt=2), policy) == TakeOver(token, 3)


def test_a_lease_that_ends_right_now_is_over() -> None:
    """No time left is no lease: a store that reports zero and one that reports less agree."""
    assert asked(stored(State.CLAIMED, 0.0)) == TakeOver(OTHER, 2)
    assert asked(stored(State.CLAIMED, 0.0, token=ME)) == TakeOver(ME, 1)
    assert asked(stored(State.COMMITTED, 0.0)) == NotReplayable("answer_pending", final=False)


def test_the_tag_of_a_fingerprint_is_all_before_its_last_colon() -> None:
    """A configuration may contain a colon; the digest does not."""
    assert tag_of("v1.exact:aa") == "v1.exact"
    assert tag_of("v1.a:b:cc") == "v1.a:b"


def test_a_take_over_that_is_refused_twice_for_one_token_met_a_lock() -> None:
    """LEA-01: a race that was lost shows another token the next time; a record that has not moved is locked."""
    record = stored(State.CLAIMED, OVER)
    assert locked(record, record.token, b"") is None
    assert locked(record, record.token, OTHER * 2) is None
    assert locked(record, record.token, record.token) == Busy(record.age, 0.0)
    assert locked(None, ME, ME) is None
