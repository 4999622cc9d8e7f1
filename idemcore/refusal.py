"""What a refused caller is told: one error for each decision that refuses, each with the next step."""

from __future__ import annotations

from math import ceil
from typing import TypeAlias

from idemcore import errors, machine
from idemcore.identity import Identity

Refusal: TypeAlias = (
    machine.Unreadable
    | machine.Incomparable
    | machine.Mismatch
    | machine.NotReplayable
    | machine.Busy
    | machine.OutcomeUnknown
)


def refusal_error(refusal: Refusal, identity: Identity, *, for_itself: bool = False) -> errors.IdempotencyError:
    """The error that says why this request neither runs nor gets a kept outcome.

    Args:
        refusal: what was decided.
        identity: of the operation.
        for_itself: of a run in progress: whether the request comes out of that very run.
    """
    digest = identity.digest
    match refusal:
        case machine.Unreadable(reason=reason):
            return errors.RecordUnreadable(
                f"The record under this key cannot be read ({reason}), so nothing was run or replayed. "
                "Upgrade this program if a newer one wrote it; else have an operator look.",
                key_digest=digest,
            )
        case machine.Incomparable():
            return errors.Incomparable(
                "This key was used under a fingerprint rule that this program does not have, so it "
                "cannot tell a retry from a different request. Look the result up; a program set up "
                "with Canonicalizer(accept=[...]) for the older rule can tell.",
                key_digest=digest,
            )
        case machine.Mismatch():
            return errors.FingerprintMismatch(
                "This key was used for a different request. Send the first request unchanged to get its "
                "answer; use a new key only for a new operation, such as a corrected one once that answer "
                "has turned the first down.",
                key_digest=digest,
            )
        case machine.NotReplayable(reason=reason, final=final):
            return errors.NotReplayable(
                f"The operation is done, but its answer is not kept ({reason}). Look the result up; do "
                "not send it again under another key."
                if final
                else "The operation is done, but the run that did it ended before it recorded its answer. Look "
                "the result up; do not send it again under another key.",
                key_digest=digest,
                reason=reason,
                final=final,
            )
        case machine.Busy(age=age, lease_left=lease_left):
            retry_after = max(1.0, min(age, lease_left))
            return errors.InProgress(
                "This call comes out of a run of the same operation, which cannot end before the call has. Do "
                "not wait for it, and give what is another operation a key of its own."
                if for_itself
                else "Another run of this operation is in progress. Try the same again under the same key in "
                f"about {ceil(retry_after)} s; if that run has died, its claim ends in "
                f"{ceil(max(lease_left, 0))} s.",
                key_digest=digest,
                retry_after=retry_after,
                for_itself=for_itself,
            )
        case machine.OutcomeUnknown():
            return errors.OutcomeUnknown(
                "An earlier run may or may not have done its work. Nothing runs under this key until an "
                "operator has settled it.",
                key_digest=digest,
            )
