"""Between records and values: one packed value for each record, read by Python and by Lua alike.

A value is a head of fixed size, then token, fingerprint, reason, meta and body, end to end. Times are
microseconds since the epoch by the server's clock, as doubles, which is what Lua counts in. A value that
is not exactly as long as its head says, or whose head holds what no version of ours wrote, is reported
as unreadable, never guessed at.

What a client sends has the same form, with durations where times will stand: a script adds its clock's
time to them, so no host's clock but the server's enters a record.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from idemcore.record import FORMAT, Answer, Claim, Kind, Record, State, Tombstone, UnreadableRecord

HEAD: Final = struct.Struct(">BcccIddddHHIII")
"""Format, state, hold, kind, attempt; claimed_at, lease_until, expires_at, completed_at; five lengths."""

STATE_LETTERS: Final = {
    State.CLAIMED: b"C",
    State.RELEASED: b"R",
    State.COMPLETED: b"D",
    State.TOMBSTONE: b"T",
    State.UNKNOWN: b"U",
}
"""No letter for a committed record: no transaction of a caller's reaches into Redis."""

_STATES: Final = {letter: state for state, letter in STATE_LETTERS.items()}
_KIND_LETTERS: Final[dict[Kind, bytes]] = {"returned": b"r", "raised": b"x", "http": b"h"}
_KINDS: Final[dict[bytes, Kind]] = {letter: kind for kind, letter in _KIND_LETTERS.items()}
_NO_KIND: Final = b"-"
_HOLDS: Final = {b"0": False, b"1": True}
_MICROSECONDS: Final = 1_000_000
_NOW: Final = struct.Struct(">d")
_TOKEN_AT: Final = _NOW.size + HEAD.size


def microseconds(seconds: float) -> float:
    """A duration as scripts count it; they make what Redis could not hold the longest that it can."""
    return seconds * _MICROSECONDS


def claim_value(claim: Claim) -> bytes:
    """A value that a script makes a claimed record of."""
    token, fingerprint = claim.token, claim.fingerprint.encode()
    head = HEAD.pack(
        FORMAT,
        b"C",
        b"1" if claim.hold else b"0",
        _NO_KIND,
        claim.attempt,
        0.0,
        microseconds(claim.lease),
        microseconds(claim.max_hold) + microseconds(claim.retention),
        0.0,
        len(token),
        len(fingerprint),
        0,
        0,
        0,
    )
    return head + token + fingerprint


def outcome_value(outcome: Answer | Tombstone, claim: Claim | None, retention: float) -> tuple[bytes, bytes]:
    """A value that a script makes a finished record of, cut in two before what may be large.

    Args:
        outcome: what is recorded.
        claim: whose outcome it is; None where the record's own token and fingerprint matter.
        retention: how long it is kept, in seconds.
    """
    if isinstance(outcome, Answer):
        letter, kind = b"D", _KIND_LETTERS[outcome.kind]
        reason, meta, body = b"", outcome.meta, outcome.body
    else:
        letter, kind = b"T", _NO_KIND
        reason, meta, body = reason_bytes(outcome.reason), b"", b""
    token, fingerprint, attempt = (
        (b"", b"", 0) if claim is None else (claim.token, claim.fingerprint.encode(), claim.attempt)
    )
    head = HEAD.pack(
        FORMAT,
        letter,
        b"0",
        kind,
        attempt,
        0.0,
        0.0,
        microseconds(retention),
        1.0,  # it has ended; the script says when
        len(token),
        len(fingerprint),
        len(reason),
        len(meta),
        len(body),
    )
    return head + token + fingerprint, b"".join((reason, meta, body))


def reason_bytes(reason: str) -> bytes:
    """A reason as a value holds it."""
    return reason.encode("utf-8", "replace")  # a lone surrogate in a person's words is no reason to fail


def read_reply(reply: bytes) -> Record | UnreadableRecord:
    """The record in what a script replies: its clock's time, and the value."""
    return _read(reply, len(reply) - _NOW.size, answered=True)[0]


def read_summary(reply: bytes, size: int) -> tuple[Record | UnreadableRecord, Kind | None, int | None]:
    """A record without its answer, that answer's kind, and how many bytes its body has.

    Args:
        reply: a script's clock's time, and at least as much of the value as comes before meta.
        size: of the whole value, in bytes.
    """
    return _read(reply, size, answered=False)


def _read(
    reply: bytes, size: int, *, answered: bool
) -> tuple[Record | UnreadableRecord, Kind | None, int | None]:
    (now,) = _NOW.unpack_from(reply)
    if size < HEAD.size:
        return _unreadable("it is cut short")
    (
        format_,
        state_letter,
        hold_letter,
        kind_letter,
        attempt,
        claimed_at,
        lease_until,
        expires_at,
        completed_at,
        token_bytes,
        fingerprint_bytes,
        reason_size,
        meta_bytes,
        body_bytes,
    ) = HEAD.unpack_from(reply, _NOW.size)
    if format_ != FORMAT:
        return _unreadable("its format is not known to this version")
    state = _STATES.get(state_letter)
    if state is None:
        return _unreadable("its state is not known to this version")
    fingerprint_at = _TOKEN_AT + token_bytes
    reason_at = fingerprint_at + fingerprint_bytes
    meta_at = reason_at + reason_size
    if size != meta_at + meta_bytes + body_bytes - _NOW.size:
        return _unreadable("it is not as long as it says")
    kind = _KINDS.get(kind_letter)
    if (kind is None) is (state is State.COMPLETED) or (kind is None and kind_letter != _NO_KIND):
        return _unreadable("its answer is damaged")
    hold = _HOLDS.get(hold_letter)
    finished = state is State.COMPLETED or state is State.TOMBSTONE
    times = claimed_at + lease_until + expires_at + completed_at
    if hold is None or finished is not (completed_at > 0) or not math.isfinite(times):
        return _unreadable("a field of it is damaged")
    try:
        fingerprint = reply[fingerprint_at:reason_at].decode()
        reason = reply[reason_at:meta_at].decode() if reason_size else ""
    except UnicodeDecodeError:
        return _unreadable("a text of it is damaged")
    answer = None
    if answered and kind is not None:
        body_at = meta_at + meta_bytes
        answer = Answer(kind, reply[meta_at:body_at], reply[body_at:])
    # As the class itself would make it, at half of the cost.
    record: Record = tuple.__new__(
        Record,
        (
            state,
            fingerprint,
            reply[_TOKEN_AT:fingerprint_at],
            attempt,
            hold,
            (now - claimed_at) / _MICROSECONDS if now > claimed_at else 0.0,
            (lease_until - now) / _MICROSECONDS,
            expires_at <= now,
            answer,
            reason,
            completed_at / _MICROSECONDS if finished else None,
        ),
    )
    return record, kind, None if kind is None else body_bytes


def _unreadable(reason: str) -> tuple[UnreadableRecord, None, None]:
    return UnreadableRecord(reason), None, None
