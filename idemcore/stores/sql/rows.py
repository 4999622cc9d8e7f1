"""Between records and rows: parameters out of claims and outcomes, records out of rows.

Binds have names that no column has (an UPDATE would confuse them). A row that does not hold what its
state needs is reported as unreadable, never guessed at and never loaded by anything but `bytes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from idemcore.identity import Identity
from idemcore.record import (
    FORMAT,
    KINDS,
    Answer,
    Claim,
    Found,
    Record,
    State,
    Swept,
    Tombstone,
    UnreadableRecord,
)

Parameters = dict[str, Any]

START: Final = ("", "", "")
"""A place before all records: no part of an identity is empty."""

COLUMNS: Final = (
    "format",
    "state",
    "fingerprint",
    "token",
    "attempt",
    "hold",
    "claimed_at",
    "lease_until",
    "expires_at",
    "completed_at",
    "kind",
    "reason",
    "meta",
    "body",
)
"""What a row is read from, in this order; the time of the reading follows."""

LISTED_COLUMNS: Final = COLUMNS[:-2]
"""The same without the answer's bytes: the sizes of its two parts stand in their place."""

IDENTITY_COLUMNS: Final = ("scope", "operation", "key")

_STATES: Final[dict[object, State]] = {state.value: state for state in State}
_MICROSECONDS: Final = 1_000_000
_LONGEST: Final = 1 << 61  # 73,000 years: two of them and a date still fit into 64 bits


def microseconds(seconds: float) -> int:
    """A duration as a row counts it; what no row can hold becomes the longest that it can."""
    return min(int(seconds * _MICROSECONDS), _LONGEST)


def identity_parameters(identity: Identity) -> Parameters:
    """Binds that name one row."""
    return {"at_scope": identity.scope, "at_operation": identity.operation, "at_key": identity.key}


def place_parameters(place: Sequence[object]) -> Parameters:
    """Binds that name the place in a walk where a page begins: three texts, or bytes of a damaged one."""
    return dict(zip(("after_scope", "after_operation", "after_key"), place, strict=True))


def claim_parameters(claim: Claim) -> Parameters:
    """Binds of everything in a claim."""
    return {
        "at_scope": claim.identity.scope,
        "at_operation": claim.identity.operation,
        "at_key": claim.identity.key,
        "my_fingerprint": claim.fingerprint,
        "my_token": claim.token,
        "my_attempt": claim.attempt,
        "my_hold": claim.hold,
        "lease_for": microseconds(claim.lease),
        "hold_for": microseconds(claim.max_hold),
        "keep_for": microseconds(claim.retention),
    }


def finish_parameters(claim: Claim, outcome: Answer | Tombstone) -> Parameters:
    """Binds of an outcome, and of what is needed of the claim that it ends."""
    parameters = outcome_parameters(outcome)
    parameters["at_scope"], parameters["at_operation"], parameters["at_key"] = claim.identity
    parameters["my_fingerprint"] = claim.fingerprint
    parameters["my_token"] = claim.token
    parameters["my_attempt"] = claim.attempt
    parameters["keep_for"] = microseconds(claim.retention)
    return parameters


def outcome_parameters(outcome: Answer | Tombstone) -> Parameters:
    """Binds of an outcome."""
    if isinstance(outcome, Answer):
        return {
            "new_state": State.COMPLETED.value,
            "new_kind": outcome.kind,
            "new_meta": outcome.meta,
            "new_body": outcome.body,
            "new_reason": "",
        }
    return {
        "new_state": State.TOMBSTONE.value,
        "new_kind": "",
        "new_meta": None,
        "new_body": None,
        "new_reason": outcome.reason,
    }


def read_record(row: Sequence[Any]) -> Record | UnreadableRecord:
    """The record in a row of `COLUMNS` and the time of the reading."""
    (
        format_,
        state_text,
        fingerprint,
        token,
        attempt,
        hold,
        claimed_at,
        lease_until,
        expires_at,
        completed_at,
        kind,
        reason,
        meta,
        body,
        now,
    ) = row
    if format_ != FORMAT:
        return UnreadableRecord("its format is not known to this version")
    state = _STATES.get(state_text)
    if state is None:
        return UnreadableRecord("its state is not known to this version")
    answer = None
    try:
        if state is State.COMPLETED:
            if kind not in KINDS or meta is None or body is None:
                return UnreadableRecord("its answer is damaged")
            answer = Answer(kind, _bytes(meta), _bytes(body))
        if (
            not isinstance(fingerprint, str)
            or not isinstance(reason, str)
            or not isinstance(attempt, int)
            or hold not in (0, 1)
            or (completed_at is None and state in (State.COMPLETED, State.TOMBSTONE))
        ):
            return UnreadableRecord("a column of it is damaged")
        return Record(
            state,
            fingerprint,
            _bytes(token),
            attempt,
            bool(hold),
            max(now - claimed_at, 0) / _MICROSECONDS,
            (lease_until - now) / _MICROSECONDS,
            expires_at <= now,
            answer,
            reason,
            None if completed_at is None else completed_at / _MICROSECONDS,
        )
    except TypeError:  # text among the numbers, numbers among the bytes
        return UnreadableRecord("a column of it is damaged")


def read_found(row: Sequence[Any]) -> Found:
    """What a list shows of a row: its identity, `LISTED_COLUMNS`, two sizes and the time of the reading."""
    place, columns = tuple(row[:3]), row[3:-3]
    meta_bytes, body_bytes, now = row[-3:]
    # The reading looks at an answer's parts, and at no byte of them.
    parts = (None if size is None else b"" for size in (meta_bytes, body_bytes))
    record = read_record((*columns, *parts, now))
    if isinstance(record, UnreadableRecord) or record.answer is None:
        return Found(_identity(place), record, None, None, place)
    return Found(_identity(place), record._replace(answer=None), record.answer.kind, body_bytes, place)


_UNENDED: Final = (State.CLAIMED.value, State.COMMITTED.value)


def read_swept(rows: Sequence[Sequence[Any]]) -> Swept:
    """What a sweep removed: of each row its state and its identity."""
    lost = tuple(_identity(identity) for state, *identity in rows if state in _UNENDED)
    return Swept(len(rows) - len(lost), len(lost), lost)


def says(record: Record, outcome: Answer | Tombstone) -> bool:
    """Whether a finished record holds exactly this outcome."""
    if isinstance(outcome, Answer):
        return record.state is State.COMPLETED and record.answer == outcome
    return record.state is State.TOMBSTONE and record.reason == outcome.reason


def _identity(texts: Iterable[Any]) -> Identity:
    """Damaged text is shown as well as it can be."""
    return Identity(*(text if isinstance(text, str) else _as_text(text) for text in texts))


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (memoryview, bytearray)):  # how some drivers hand bytes over
        return bytes(value)
    raise TypeError


def _as_text(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
