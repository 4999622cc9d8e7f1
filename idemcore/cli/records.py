"""Records as an operator sees them: which there are, in what state, and the one that is meant.

A record is named by its key, scope and operation, or by the digest that logs and errors show.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import click

from idemcore.cli.options import F, Wrong
from idemcore.engine import Engine
from idemcore.identity import SINGLE_TENANT, Identity, identify
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


class Meant(NamedTuple):
    """The record that an operator asked for.

    Attributes:
        identity: of it.
        record: as it stands.
        key: the raw one, where the operator gave it.
    """

    identity: Identity
    record: Record | UnreadableRecord
    key: str | None


def identity_options(command: F) -> F:
    """KEY or a #DIGEST, ``--operation`` and ``--scope``."""
    command = click.argument("key", metavar="KEY|#DIGEST")(command)
    command = click.option("--operation", default="http", show_default=True, help="Which kind of call.")(
        command
    )
    described = "Who asked, as given or as `ls` shows it; left out for SINGLE_TENANT."
    return click.option("--scope", help=described)(command)


def meant(idem: Engine, scope: str | None, operation: str, key: str) -> Meant:
    """The record that these name.

    Raises:
        Wrong: there is none.
    """
    if scope is not None and scope.startswith("~"):  # as `ls` shows what is no plain text
        identity = Identity(scope, operation, key)
    else:
        identity = identify(SINGLE_TENANT if scope is None else scope, operation, key)
    record = idem.get(identity)
    if record is not None:
        return Meant(identity, record, key)
    if key.startswith("#"):
        named = (found.identity for found in walk(idem.store) if found.identity.digest == key[1:])
        found = next(named, None)
        record = None if found is None else idem.get(found)
        if found is not None and record is not None:
            return Meant(found, record, None)
    where = "SINGLE_TENANT" if scope is None else f"scope {scope}"
    raise Wrong(
        f"There is no such record under {where} and operation {operation}. `ls` shows scopes, operations and "
        "digests; a #DIGEST is found whatever its scope."
    )


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
