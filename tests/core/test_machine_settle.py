"""The settling table row by row: what becomes of a claim when user code has ended."""

from __future__ import annotations

from itertools import product

import pytest

from idemcore.machine import Ending, Settlement, settle
from idemcore.policy import Policy

RERUN, BLOCK = Policy(on_abandoned="rerun"), Policy(on_abandoned="block")
ATTEMPTS = (1, 2, 7)

# Ending and policy, then the settlement of the first attempt and of every later one.
TABLE = {
    (Ending.SUCCESS, "rerun"): (Settlement.KEEP, Settlement.KEEP),
    (Ending.SUCCESS, "block"): (Settlement.KEEP, Settlement.KEEP),
    (Ending.UNKEEPABLE, "rerun"): (Settlement.TOMBSTONE, Settlement.TOMBSTONE),
    (Ending.UNKEEPABLE, "block"): (Settlement.TOMBSTONE, Settlement.TOMBSTONE),
    (Ending.DOUBT, "rerun"): (Settlement.UNKNOWN, Settlement.UNKNOWN),
    (Ending.DOUBT, "block"): (Settlement.UNKNOWN, Settlement.UNKNOWN),
    (Ending.FAILURE, "block"): (Settlement.UNKNOWN, Settlement.UNKNOWN),
    (Ending.REFUSAL, "rerun"): (Settlement.FORGET, Settlement.RETRY),
    (Ending.REFUSAL, "block"): (Settlement.FORGET, Settlement.RETRY),
    (Ending.FORGET, "rerun"): (Settlement.FORGET, Settlement.RETRY),
    (Ending.FORGET, "block"): (Settlement.FORGET, Settlement.RETRY),
    (Ending.FAILURE, "rerun"): (Settlement.RETRY, Settlement.RETRY),
    (Ending.RELEASE, "rerun"): (Settlement.RETRY, Settlement.RETRY),
    (Ending.RELEASE, "block"): (Settlement.RETRY, Settlement.RETRY),
}


@pytest.mark.parametrize(("ending", "policy", "attempt"), list(product(Ending, (RERUN, BLOCK), ATTEMPTS)))
def test_settling_is_the_table(ending: Ending, policy: Policy, attempt: int) -> None:
    """Every ending under every policy, on the first attempt and later, without exception."""
    first, later = TABLE[ending, policy.on_abandoned]
    assert settle(ending, policy, attempt) is (first if attempt == 1 else later)


@pytest.mark.parametrize(("policy", "attempt"), list(product((RERUN, BLOCK), ATTEMPTS)))
def test_what_is_done_is_never_run_again(policy: Policy, attempt: int) -> None:
    """A success is kept, and one that cannot be kept leaves the fact that it happened."""
    assert settle(Ending.SUCCESS, policy, attempt) is Settlement.KEEP
    assert settle(Ending.UNKEEPABLE, policy, attempt) is Settlement.TOMBSTONE


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_failure_may_be_tried_again_under_rerun_and_never_under_block(attempt: int) -> None:
    """OUT-01, OUT-03: a 500 is not frozen into the key, and who cannot bear a repeat says block."""
    assert settle(Ending.FAILURE, RERUN, attempt) is Settlement.RETRY
    assert settle(Ending.FAILURE, BLOCK, attempt) is Settlement.UNKNOWN


@pytest.mark.parametrize(("policy", "attempt"), list(product((RERUN, BLOCK), ATTEMPTS)))
def test_doubt_is_for_an_operator_under_either_policy(policy: Policy, attempt: int) -> None:
    """A provider's timeout that the policy names leaves the outcome unknown, under rerun too."""
    assert settle(Ending.DOUBT, policy, attempt) is Settlement.UNKNOWN


@pytest.mark.parametrize("policy", [RERUN, BLOCK])
@pytest.mark.parametrize("ending", [Ending.REFUSAL, Ending.FORGET])
def test_the_key_is_free_for_another_request_after_a_first_refusal_only(policy: Policy, ending: Ending) -> None:
    """OUT-02: a corrected request may use the key, unless an earlier attempt may have had an effect."""
    assert settle(ending, policy, 1) is Settlement.FORGET
    assert settle(ending, policy, 2) is Settlement.RETRY


def test_under_block_only_what_says_that_nothing_was_done_frees_the_key() -> None:
    """All other endings keep the identity from running until an operator has looked."""
    freeing = {ending for ending in Ending if settle(ending, BLOCK, 1) in (Settlement.FORGET, Settlement.RETRY)}
    assert freeing == {Ending.REFUSAL, Ending.FORGET, Ending.RELEASE}
