"""What a caller is told of joining their own transaction; the store does it, where it can.

A refusal is always an error, because an error that leaves the caller's transaction rolls it back: that is
what keeps the rows of a late or repeated run out of the database.
"""

from __future__ import annotations

from idemcore.errors import AlreadyCommitted, ConfigurationError, LeaseLost
from idemcore.record import Claim
from idemcore.stores.base import CallersTransaction, JoiningStore, Store


def join(store: Store, claim: Claim, place: object, joined: CallersTransaction | None) -> CallersTransaction:
    """Marks the record in the caller's transaction; see `Attempt.join` for the errors.

    Args:
        store: of the record.
        claim: whose record is marked.
        place: what the caller gave.
        joined: what this claim has joined before, ended or not.
    """
    if not isinstance(store, JoiningStore):
        raise ConfigurationError(
            f"{type(store).__name__} has no transaction to join. Keep the records in the database of your own "
            "rows, with SQLAlchemyStore, in tests by use_store(idem, SQLAlchemyStore(...)); or give what you "
            "call attempt.child_key(...), so that it deduplicates."
        )
    result = store.join(place, claim, joined if joined is not None and joined.is_active else None)
    if result == "lost":
        raise LeaseLost(
            "This run has lost its claim and another one may have started, so its rows must not be committed: "
            "roll this transaction back.",
            key_digest=claim.identity.digest,
        )
    if result == "already":
        raise AlreadyCommitted(
            "An earlier transaction of this run was committed, so its rows are there: roll this one back, look "
            "them up, and complete the attempt with them.",
            key_digest=claim.identity.digest,
        )
    return result
