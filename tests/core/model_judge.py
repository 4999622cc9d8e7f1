"""Judges a step by the truth: may this claim be made, is this the right answer, can the key get stuck?

Nothing here looks at a decision table. What is asked is what the documentation promises to users, so a
table that breaks a promise is caught even where it is consistent in itself.
"""

from __future__ import annotations

from typing import Protocol

from idemcore import machine
from idemcore.record import State
from tests.core.model_store import OWNED, Bid, Made, ModelStore, Row
from tests.core.model_world import (
    CLEARED,
    COMMITTED_IS_FINAL,
    FAILED,
    FIRST,
    LATE_IS_FENCED,
    LEASE_OVER,
    NO_LOST_RESULT,
    NO_STUCK_KEY,
    NOTHING_DONE,
    ONE_EFFECT,
    OPERATOR,
    OWN_CLAIM_IS_KNOWN,
    RETENTION_OVER,
    RIGHT_REPLAY,
    SAME_REQUEST,
    STALE,
    Scene,
    Worker,
)


class Fresh(Protocol):
    """Decides for a request that has no claim yet."""

    def __call__(self, row: Row, fingerprint: str, *, block: bool) -> machine.Decision: ...


def unrun(worker: Worker, scene: Scene) -> bool:
    """Whether the latest claim is this worker's own and its user code has not begun."""
    waiting = worker.at in ("reserving", "taking") and worker.standing == "holds"
    return waiting and scene.ground in ("running", "held")


def abandoned(row: Row) -> bool:
    """Whether the record is a claim whose lease is over."""
    return row.state is State.CLAIMED and not row.lease


def licence(worker: Worker, scene: Scene) -> str:
    """Why this claim may be made now, or ``""`` where nothing allows it."""
    row = scene.row
    if scene.over:
        return RETENTION_OVER
    if unrun(worker, scene):
        return scene.cause
    match scene.ground:
        case "none":
            return FIRST
        case "running" if row is not None and abandoned(row) and not worker.block:
            return LEASE_OVER
        case "failed":
            return FAILED
        case "nothing":
            return NOTHING_DONE
        case "cleared":
            return CLEARED
        case _:
            return ""


def wrong_claim(worker: Worker, scene: Scene) -> str:
    """What is wrong with a claim that the store has just granted."""
    if not licence(worker, scene):
        if scene.ground == "committed":
            return COMMITTED_IS_FINAL + "a run was let in after the caller's transaction was committed"
        if scene.ground in ("stored", "buried"):
            return NO_LOST_RESULT + "a run was let in although the outcome is recorded"
        return ONE_EFFECT + f"a run was let in while the one before it is {scene.ground}"
    return ""


def wrong_answer(
    decision: machine.Decision, worker: Worker, scene: Scene, me: int, reported: Row, *, ignore: bool
) -> str:
    """What is wrong with a decision about a record that the store has just reported."""
    ground, mine = scene.ground, unrun(worker, scene) and reported.token == me
    differs = worker.fingerprint != reported.fingerprint
    refused = differs and not ignore and isinstance(decision, machine.Mismatch)
    if ground == "stored" and not refused and not isinstance(decision, machine.Replayable):
        return NO_LOST_RESULT + f"the answer is recorded, and the request got {decision}"
    if ground == "buried" and not refused and not isinstance(decision, machine.NotReplayable):
        return NO_LOST_RESULT + f"the work is recorded as done, and the request got {decision}"
    match decision:
        case machine.Mismatch() if not differs:
            return NO_STUCK_KEY + "a true retry was refused as a different request"
        case machine.Replayable(record) if ground != "stored" or record.answer is None:
            return RIGHT_REPLAY + f"there is no answer to give back ({ground})"
        case machine.Replayable() if differs and not ignore:
            return RIGHT_REPLAY + "a different request got the answer"
        case machine.NotReplayable(final=final) if ground != ("buried" if final else "committed"):
            return NO_STUCK_KEY + f"told that the work is done while it is {ground}"
        case machine.Run(attempt) if not mine or attempt != worker.attempt:
            return ONE_EFFECT + "a claim was taken for the caller's own"
        case machine.TakeOver() if differs:
            return SAME_REQUEST + "a different request may take over"
        case machine.TakeOver(attempt=attempt) if mine and attempt != worker.attempt:
            return OWN_CLAIM_IS_KNOWN + "no run has happened, and its attempt number rises"
        case machine.Busy() if mine:
            return OWN_CLAIM_IS_KNOWN + "the caller is refused because of its own claim"
        case machine.Busy() if not reported.lease:
            return NO_STUCK_KEY + "the request waits for a lease that is over"
        case machine.OutcomeUnknown() if mine:
            return OWN_CLAIM_IS_KNOWN + "no run has happened, and an operator is asked for"
        case machine.OutcomeUnknown() if not (
            ground in ("held", "doubt") or (ground == "running" and worker.block)
        ):
            return NO_STUCK_KEY + f"an operator is asked for while the run is {ground}"
        case machine.Reserve() | machine.Unreadable() | machine.Incomparable():
            return NO_STUCK_KEY + f"the store reports a record and the machine says {decision}"
        case _:
            return ""


def wrong_completion(worker: Worker, scene: Scene, after: Row | None, outcome: Made, *, stored: bool) -> str:
    """What is wrong with the store's answer to `complete`."""
    row, ground = scene.row, scene.ground
    if stored and (after is None or after.outcome != outcome):
        return NO_LOST_RESULT + "told that the outcome is recorded, and another one stands"
    owner = worker.standing == "holds" and ground not in ("stored", "buried")
    if owner and not stored:
        return NO_LOST_RESULT + f"the latest run could not record its outcome ({ground})"
    if row is None or row == after or owner or scene.over:
        return ""
    if ground in ("stored", "buried"):
        return LATE_IS_FENCED + "a finished outcome was overwritten"
    if ground == "committed":
        return COMMITTED_IS_FINAL + "another run's committed record was overwritten"
    if ground in ("running", "held") and row.lease:
        return LATE_IS_FENCED + "a standing claim was overwritten"
    if ground in ("held", "doubt"):
        return LATE_IS_FENCED + "an outcome that only an operator may settle was settled by another run"
    if row.fingerprint != worker.fingerprint:
        return RIGHT_REPLAY + "the outcome of another request was recorded"
    return ""


def stuck(store: ModelStore, decide: Fresh, row: Row, *, block: bool) -> str:
    """Why requests with this key would never again get an answer, or ``""``.

    With its lease over, the key lets the same request run, answers it, or asks for an operator, whose
    every verdict helps. Where the answer of committed work is still to come, an operator can give it. With
    its retention over too, the key is free for any request.
    """
    rested = row._replace(lease=False)
    rows = [rested]
    outcomes = (Made("answer", row.fingerprint, OPERATOR), Made("tombstone", row.fingerprint, OPERATOR))
    match decide(rested, row.fingerprint, block=block):
        case machine.OutcomeUnknown():
            rows = [store.resolve(rested, row.token, to)[0] or rested for to in ("released", *outcomes)]
        case machine.NotReplayable(final=False):
            rows += [store.resolve(rested, row.token, to)[0] or rested for to in outcomes]
            if any(each.outcome is None for each in rows[1:]):
                return NO_STUCK_KEY + "the run that committed has died, and nobody can end what it began"
    other = "B" if row.fingerprint == "A" else "A"
    for each in rows:
        if not lets_go(store, decide(each, row.fingerprint, block=block), each):
            return NO_STUCK_KEY + f"with its lease over, for ever {decide(each, row.fingerprint, block=block)}"
        if each.hold and each.state in (State.CLAIMED, State.UNKNOWN):
            continue  # until an operator has looked
        aged = each._replace(past=True, spent=each.state in OWNED)
        decision = decide(aged, other, block=block)
        if not isinstance(decision, machine.Reserve) or not lets_go(store, decision, aged):
            return NO_STUCK_KEY + f"with its retention over, for ever {decision}"
    return ""


def lets_go(store: ModelStore, decision: machine.Decision, row: Row) -> bool:
    """Whether a request gets an answer or a run by this decision, the store agreeing."""
    match decision:
        case machine.Replayable() | machine.NotReplayable():
            return True
        case machine.TakeOver(attempt=attempt):
            bid = Bid(STALE, row.fingerprint, attempt, hold=False)
            return store.take_over(row, row.token, bid)[1]
        case machine.Reserve():
            return store.reserve(row, Bid(STALE, row.fingerprint, 1, hold=False))[1] is None
        case _:
            return False
