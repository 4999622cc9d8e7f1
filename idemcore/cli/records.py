"""Records as an operator sees them: which there are, in what state, and what is told of each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from idemcore.cli.options import printable
from idemcore.identity import Identity
from idemcore.record import Found, Record, State, UnreadableRecord
from idemcore.stores.base import Store

ABANDONED: Final = "abandoned"
UNANSWERED: Final = "unanswered"
UNREADABLE: Final = "unreadable"
STATES: Final = (*(state.value for state in State), ABANDONED, UNANSWERED, UNREADABLE)
"""What `state_of` says. A claim is abandoned where its lease is over: its run was killed, or is late. A record
is unanswered where that happened after its transaction was committed and before its answer was recorded.
"""

_LEASE_OVER: Final = {State.CLAIMED: ABANDONED, State.COMMITTED: UNANSWERED}
_STORED: Final = {ABANDONED: State.CLAIMED, UNANSWERED: State.COMMITTED, UNREADABLE: None}

_PAGE = 1_000
"""Records that are fetched at a time."""


def walk(
    store: Store,
    *,
    scope: str | None = None,
    operation: str | None = None,
    state: str | None = None,
    only_open: bool = False,
) -> Iterator[Found]:
    """Through all records that fit, a page in memory at a time; `state` is one of `STATES`."""
    derived = state in _STORED
    stored = None if state is None else _STORED[state] if derived else State(state)
    only_open = only_open or derived
    last: Found | None = None
    while True:
        page = store.find(
            scope=scope, operation=operation, state=stored, only_open=only_open, after=last, limit=_PAGE
        )
        yield from (found for found in page if state in (None, state_of(found.record)))
        if len(page) < _PAGE:
            return
        last = page[-1]


def state_of(record: Record | UnreadableRecord) -> str:
    """One of `STATES`."""
    if isinstance(record, UnreadableRecord):
        return UNREADABLE
    ended = None if record.lease_stands else _LEASE_OVER.get(record.state)
    return ended or record.state.value


def name_of(identity: Identity) -> str:
    """How a record is named in a sentence: without its key, and to be pasted into another command."""
    return printable(f"#{identity.digest} of {identity.operation}, scope {identity.scope}")


def facts(
    identity: Identity,
    record: Record | UnreadableRecord,
    kind: str | None = None,
    body_bytes: int | None = None,
) -> dict[str, object]:
    """What is told of a record: no key and nothing of its answer."""
    named: dict[str, object] = {
        "digest": identity.digest,
        "scope": identity.scope,
        "operation": identity.operation,
        "state": state_of(record),
    }
    if isinstance(record, UnreadableRecord):
        return {**named, "reason": record.reason}
    return {
        **named,
        "attempt": record.attempt,
        "hold": record.hold,
        "age": round(record.age, 3),
        "started_at": _ago(record.age),
        "lease_left": round(record.lease_left, 3) if record.lease_stands else None,
        "past_retention": record.past_retention,
        "reason": record.reason or None,
        "kind": kind,
        "body_bytes": body_bytes,
        "completed_at": _time(record.completed_at),
        "fingerprint": record.fingerprint,
    }


def _ago(seconds: float) -> str:
    """By the clock of this machine: the store tells how long ago, by its own."""
    try:
        return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds")
    except OverflowError:  # a damaged record is still one to be shown
        return "damaged"


def _time(epoch_seconds: float | None) -> str | None:
    if epoch_seconds is None:
        return None
    try:
        return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return "damaged"
