"""Rules with one clause wrong: what the explorer has to find, so that its silence means something.

Each mutant changes one row of the decision table, one row of the settling table, or one clause of a store
verb, and names the promise that breaks. Some clauses look like belt and braces; here is what each holds up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from idemcore import machine
from idemcore.machine import Decision, Ending, PlainFingerprint, Settlement, TakeOver
from idemcore.policy import Policy
from idemcore.record import Record, State
from tests.core import mutant_stores as stores
from tests.core.explorer import BLOCK, BLOCK_JOIN, JOIN, MIXED, RERUN
from tests.core.model_rules import Rules, World
from tests.core.model_world import (
    COMMITTED_IS_FINAL,
    LATE_IS_FENCED,
    LEASE_IS_BOUNDED,
    NO_LOST_RESULT,
    NO_STUCK_KEY,
    ONE_EFFECT,
    OWN_CLAIM_IS_KNOWN,
    RIGHT_REPLAY,
    SAME_REQUEST,
    SWEEPER_SPARES,
)


@dataclass(frozen=True)
class Mutant:
    """One wrong rule, a world in which it shows, and the promise that it breaks."""

    clause: str
    world: World
    rules: Rules
    breaks: str


def free(record: Record) -> bool:
    """Whether the record is one that may be taken over."""
    return record.state is State.RELEASED or (record.state is State.CLAIMED and not record.lease_stands)


def row_4_only_for_standing(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if free(record) and policy.on_mismatch == "refuse":
        mine = PlainFingerprint(record.fingerprint)
    return machine.decide(record, mine, policy, token)


def no_row_9(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if free(record) and policy.on_mismatch == "ignore":
        mine = PlainFingerprint(record.fingerprint)
    return machine.decide(record, mine, policy, token)


def no_row_4(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if record.state is State.COMPLETED:
        mine = PlainFingerprint(record.fingerprint)
    return machine.decide(record, mine, policy, token)


def no_row_7a(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    decision = machine.decide(record, mine, policy, token)
    return machine.Busy(record.age, record.lease_left) if isinstance(decision, machine.Run) else decision


def no_row_7b(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    another = b"" if free(record) else token
    return machine.decide(record, mine, policy, another)


def no_hold_in_row_10(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if not record.past_retention:
        record = record._replace(hold=False)
    return machine.decide(record, mine, policy, token)


def no_row_11(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    policy = Policy(on_mismatch=policy.on_mismatch, on_abandoned="rerun")
    return machine.decide(record, mine, policy, token)


def no_unknown_in_row_10(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if record.state is State.UNKNOWN:
        return TakeOver(record.token, record.attempt + 1)
    return machine.decide(record, mine, policy, token)


def same_attempt_in_row_12(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    decision = machine.decide(record, mine, policy, token)
    return TakeOver(decision.seen_token, record.attempt) if isinstance(decision, TakeOver) else decision


def committed_is_abandoned(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if record.state is State.COMMITTED and not record.lease_stands:
        return TakeOver(record.token, record.attempt + 1)
    return machine.decide(record, mine, policy, token)


def tombstone_is_free(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if record.state is State.TOMBSTONE:
        return TakeOver(record.token, record.attempt + 1)
    return machine.decide(record, mine, policy, token)


def no_row_2(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    return machine.decide(record._replace(past_retention=False), mine, policy, token)


def hold_is_forgettable(record: Record, mine: PlainFingerprint, policy: Policy, token: bytes) -> Decision:
    if record.past_retention and not record.lease_stands:
        return machine.Reserve()
    return machine.decide(record, mine, policy, token)


def forgets_later_attempts(ending: Ending, policy: Policy, attempt: int) -> Settlement:
    return machine.settle(ending, policy, 1)


def forgets_failures(ending: Ending, policy: Policy, attempt: int) -> Settlement:
    return machine.settle(Ending.REFUSAL if ending is Ending.FAILURE else ending, policy, attempt)


def retries_doubt(ending: Ending, policy: Policy, attempt: int) -> Settlement:
    return Settlement.RETRY if ending is Ending.DOUBT else machine.settle(ending, policy, attempt)


def block_retries_failures(ending: Ending, policy: Policy, attempt: int) -> Settlement:
    return Settlement.RETRY if ending is Ending.FAILURE else machine.settle(ending, policy, attempt)


def frees_the_unkeepable(ending: Ending, policy: Policy, attempt: int) -> Settlement:
    return Settlement.RETRY if ending is Ending.UNKEEPABLE else machine.settle(ending, policy, attempt)


MUTANTS: Final = (
    Mutant("no row 2", RERUN, Rules(decide=no_row_2), NO_STUCK_KEY),
    Mutant("row 2 forgets what is on hold", BLOCK, Rules(decide=hold_is_forgettable), NO_STUCK_KEY),
    Mutant("no row 4 for completed records", RERUN, Rules(decide=no_row_4), RIGHT_REPLAY),
    Mutant("row 4 for standing claims only", RERUN, Rules(decide=row_4_only_for_standing), SAME_REQUEST),
    Mutant("row 6: tombstones are free", RERUN, Rules(decide=tombstone_is_free), NO_STUCK_KEY),
    Mutant("row 6: committed counts as abandoned", JOIN, Rules(decide=committed_is_abandoned), NO_STUCK_KEY),
    Mutant("no row 7a", RERUN, Rules(decide=no_row_7a), OWN_CLAIM_IS_KNOWN),
    Mutant("no row 7b under rerun", RERUN, Rules(decide=no_row_7b), OWN_CLAIM_IS_KNOWN),
    Mutant("no row 7b under block", BLOCK, Rules(decide=no_row_7b), OWN_CLAIM_IS_KNOWN),
    Mutant("no row 9", RERUN, Rules(decide=no_row_9), SAME_REQUEST),
    Mutant("row 10 without hold", MIXED, Rules(decide=no_hold_in_row_10), ONE_EFFECT),
    Mutant("row 10 without unknown", RERUN, Rules(decide=no_unknown_in_row_10), NO_STUCK_KEY),
    Mutant("no row 11", MIXED, Rules(decide=no_row_11), ONE_EFFECT),
    Mutant("row 12 keeps the attempt number", RERUN, Rules(decide=same_attempt_in_row_12), SAME_REQUEST),
    Mutant("forget on any attempt", RERUN, Rules(settle=forgets_later_attempts), SAME_REQUEST),
    Mutant("forget after a failure", RERUN, Rules(settle=forgets_failures), SAME_REQUEST),
    Mutant("retry after doubt", RERUN, Rules(settle=retries_doubt), ONE_EFFECT),
    Mutant("retry after a failure under block", BLOCK, Rules(settle=block_retries_failures), ONE_EFFECT),
    Mutant("retry where the answer cannot be kept", RERUN, Rules(settle=frees_the_unkeepable), ONE_EFFECT),
    Mutant("release after complete", RERUN, Rules(gives_up_after_complete=True), ONE_EFFECT),
    Mutant("reserve takes over", BLOCK, Rules(store=stores.ReserveTakesOver()), ONE_EFFECT),
    Mutant("reserve replaces what is on hold", BLOCK, Rules(store=stores.ReplacesHeld()), ONE_EFFECT),
    Mutant("reserve never replaces", RERUN, Rules(store=stores.NothingIsForgettable()), NO_STUCK_KEY),
    Mutant("take_over of a standing claim", RERUN, Rules(store=stores.TakesStandingClaims()), ONE_EFFECT),
    Mutant("take_over without comparing", BLOCK, Rules(store=stores.TakesWhatWasNotSeen()), ONE_EFFECT),
    Mutant("take_over of a committed record", JOIN, Rules(store=stores.TakesCommitted()), COMMITTED_IS_FINAL),
    Mutant("take_over of an unknown record", RERUN, Rules(store=stores.TakesUnknown()), ONE_EFFECT),
    Mutant(
        "take_over changes the request", RERUN, Rules(store=stores.TakeOverChangesTheRequest()), SAME_REQUEST
    ),
    Mutant("take_over loses hold", MIXED, Rules(store=stores.TakeOverDropsHold()), ONE_EFFECT),
    Mutant(
        "complete on a standing claim", RERUN, Rules(store=stores.CompletesStandingClaims()), LATE_IS_FENCED
    ),
    Mutant("complete for another request", RERUN, Rules(store=stores.CompletesOtherRequests()), RIGHT_REPLAY),
    Mutant(
        "complete on another's held claim", BLOCK, Rules(store=stores.CompletesHeldClaims()), LATE_IS_FENCED
    ),
    Mutant(
        "complete on another's committed", JOIN, Rules(store=stores.CompletesCommitted()), COMMITTED_IS_FINAL
    ),
    Mutant("complete on a finished record", RERUN, Rules(store=stores.CompletesFinished()), LATE_IS_FENCED),
    Mutant(
        "complete only while the lease stands", RERUN, Rules(store=stores.CompletesOnlyInTime()), NO_LOST_RESULT
    ),
    Mutant("release by anybody", RERUN, Rules(store=stores.ReleasesAnothers()), LATE_IS_FENCED),
    Mutant(
        "release frees a committed record", JOIN, Rules(store=stores.ReleasesCommitted()), COMMITTED_IS_FINAL
    ),
    Mutant("release does not move the expiry", RERUN, Rules(store=stores.ReleaseKeepsExpiry()), NO_LOST_RESULT),
    Mutant("unknown without hold", RERUN, Rules(store=stores.UnknownWithoutHold()), ONE_EFFECT),
    Mutant("renew by anybody", RERUN, Rules(store=stores.RenewsAnothers()), LATE_IS_FENCED),
    Mutant("renew past max_hold", RERUN, Rules(store=stores.RenewsForEver()), LEASE_IS_BOUNDED),
    Mutant("join by anybody", JOIN, Rules(store=stores.JoinsLate()), COMMITTED_IS_FINAL),
    Mutant("join a second time", JOIN, Rules(store=stores.JoinsTwice()), COMMITTED_IS_FINAL),
    Mutant("join after a release", BLOCK_JOIN, Rules(store=stores.JoinsReleased()), COMMITTED_IS_FINAL),
    Mutant("join keeps hold", BLOCK_JOIN, Rules(store=stores.JoinKeepsHold()), NO_STUCK_KEY),
    Mutant("resolve of a standing claim", RERUN, Rules(store=stores.ResolvesStandingClaims()), ONE_EFFECT),
    Mutant("resolve of a standing mark", JOIN, Rules(store=stores.ResolvesStandingClaims()), ONE_EFFECT),
    Mutant(
        "resolve frees a committed record",
        JOIN,
        Rules(store=stores.ResolveFreesCommitted()),
        COMMITTED_IS_FINAL,
    ),
    Mutant(
        "no resolve of a committed record", JOIN, Rules(store=stores.ResolvesNothingCommitted()), NO_STUCK_KEY
    ),
    Mutant("resolve of a finished record", RERUN, Rules(store=stores.ResolvesFinished()), ONE_EFFECT),
    Mutant("a verdict leaves the token, block", BLOCK, Rules(store=stores.VerdictKeepsToken()), ONE_EFFECT),
    Mutant("a verdict leaves the token, mixed", MIXED, Rules(store=stores.VerdictKeepsToken()), ONE_EFFECT),
    Mutant(
        "a verdict's token is taken for an owner's",
        RERUN,
        Rules(store=stores.VerdictKeepsTokenForOutcomes()),
        NO_LOST_RESULT,
    ),
    Mutant("sweep without asking again", RERUN, Rules(store=stores.SweepsWithoutLooking()), SWEEPER_SPARES),
    Mutant("sweep of what is on hold", BLOCK, Rules(store=stores.SweepsHeld()), SWEEPER_SPARES),
)
