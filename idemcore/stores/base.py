"""The store contract: atomic verbs over frozen records; the docstrings here are the contract.

A store keeps records and tells time; it knows no policy and keeps no state of a caller's. Every verb is
one atomic step: whatever interleaves with it, the result is that of some order of whole verbs. Every verb
may be repeated with the same arguments after a lost acknowledgement and then reports what the first did.

*The owner* of a record is whoever's token it carries while it is claimed or committed. A record is
*forgettable* when it is past retention, its lease does not stand and it is not on hold.

Failures: `StoreUnavailable` where the store cannot be reached or does not answer in time (the cause
chained), `StoreFull` where it has no room, `ConfigurationError` where it is not set up, `AnswerTooLarge` for
an answer that it can never keep, before anything of it is written. A record that cannot be understood is
reported as `UnreadableRecord`, never raised and never overwritten but by `sweep`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from idemcore.identity import Identity
from idemcore.record import (
    Answer,
    Claim,
    Found,
    Record,
    State,
    Stored,
    Superseded,
    Swept,
    Tombstone,
    UnreadableRecord,
)

ReleaseTo: TypeAlias = Literal["released", "unknown", "deleted"]
Verdict: TypeAlias = Answer | Tombstone | Literal["released"]

FAILED_AFTER_COMMIT: Final = "failed_after_commit"
"""The reason of a tombstone left by a release after the caller's own transaction was committed."""


def verdict_token(seen_token: bytes) -> bytes:
    """The token that a verdict leaves in place of the one that the operator saw; 16 bytes."""
    return hashlib.sha256(b"idemcore verdict" + seen_token).digest()[:16]


class Store(Protocol):
    """Where claims and outcomes are kept."""

    def reserve(self, claim: Claim) -> Record | UnreadableRecord | None:
        """Inserts the claim where there is nothing or a forgettable record, else reports the record.

        Returns:
            None when it inserted. A record otherwise, the caller's own included (same token, when an
            earlier acknowledgement got lost).

        Never takes over, never downgrades, and where it only reports it writes nothing. At claim the
        record is set to expire after `max_hold` plus `retention`; a standing lease is never past retention.
        """
        ...

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        """Compare-and-set: makes the claim's token the owner, with a new lease and the claim's attempt number.

        Returns:
            True if `seen_token` still stood and the record was released, or claimed with its lease over
            (also when an earlier try of this very take-over did it: claimed, the claim's own token and
            lease standing). False otherwise: a committed, unknown or finished record is never taken over.
            A store may also say False of a record that somebody else is changing at the moment, such as a
            transaction of the caller's that has joined it, in place of waiting for them.

        The record's fingerprint and creation time stay; its hold becomes the claim's hold.
        """
        ...

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        """Records how the work ended; clears hold; the record is kept for `retention` from now at the least.

        With the record's own token: on claimed, committed, released or unknown, lease over or not; and
        again after it succeeded, which changes nothing. With another token: only if the fingerprint is
        the same and the record is released, or claimed with its lease over and not on hold; never on
        another's committed. On an absent or forgettable record it inserts. It leaves its own token.

        Returns:
            Stored, or Superseded with the record that stands instead.
        """
        ...

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        """Gives the claim up, by the owner only.

        To ``released``: fingerprint and attempt number stay, takeable at once, hold cleared. To
        ``unknown``: on hold until it is resolved; `reason` is kept. To ``deleted``: the record goes.
        A committed record lands on a tombstone instead (``failed_after_commit``), in the same statement.
        Released and unknown records are kept for `retention` from now at the least.

        Returns:
            True if it was the owner, or if a repetition found its work done (an absent record counts as
            deleted); False if another's record stands.
        """
        ...

    def renew(self, claim: Claim) -> float | None:
        """Moves the lease's end to `lease` from now, by the owner only, while the lease still stands or
        nobody has taken the record; never past the start of the claim plus `max_hold`.

        Returns:
            Seconds until the lease ends, zero or less when `max_hold` is used up; None when it is lost.
        """
        ...

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        """An operator's verdict, by compare-and-set: only on that token, and only on a record that is
        unknown, or claimed or committed with its lease over. A committed one never becomes released: its
        rows are there, and a second run would write them again. A released one takes an outcome too, from
        whoever learns before a retry comes that the work was done. Clears hold; attempt number and
        fingerprint stay.

        It leaves `verdict_token` of the seen one, so that the claim which it ended is nobody's any more: a
        caller whose acknowledgement got lost could else claim under its old token again, and whoever had
        seen that token released could take this second claim over. A repetition is recognised by it.

        Returns:
            True if it was applied; False if the record has moved on, or is not to have this verdict.
        """
        ...

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        """An operator's word that the key is free again: removes the record, by compare-and-set on that
        token, whatever it says and whether or not it is on hold; never one whose lease stands.

        Returns:
            True if it is gone (an absent record counts: a repetition found its work done); False if the
            record has moved on, cannot be read, or somebody works on it.
        """
        ...

    def get(self, identity: Identity) -> Record | UnreadableRecord | None:
        """Reports the record without touching it; None for nothing (forgettable records are reported)."""
        ...

    def find(
        self,
        *,
        scope: str | None = None,
        operation: str | None = None,
        state: State | None = None,
        only_open: bool = False,
        after: Found | None = None,
        limit: int,
    ) -> list[Found]:
        """A page of a walk through the records, for operators and tests: without the bytes of their answers.

        The order is the store's own and that of identities, so a record keeps its place whatever becomes
        of it: a walk sees each that stands throughout exactly once, and costs the same from page to page.

        Args:
            scope: of this encoded scope only.
            operation: of this operation only.
            state: in this state only.
            only_open: only what may wait for somebody: unknown outcomes, claimed and committed records whose
                lease is over, and what cannot be read.
            after: the last one of the page before; the walk starts where it is None.
            limit: the most records in this page. A page with fewer is the last one.
        """
        ...

    def sweep(self, limit: int) -> Swept:
        """Removes at most `limit` forgettable records in one bounded step, re-checked under the lock.

        Unreadable records past their retention go too. Another batch is due while `removed` comes up to
        `limit`. Safe beside any other verb and any number of other sweepers.
        """
        ...

    def create_schema(self) -> None:
        """Makes what the store needs to hold records; safe from several processes at once, repeatable."""
        ...

    def check(self) -> None:
        """Raises what is wrong with the set-up, now rather than at the first request."""
        ...

    def close(self) -> None:
        """Gives back what the store itself opened; never what it was handed."""
        ...


class CallersTransaction(Protocol):
    """A transaction of the caller's own, in which a record was marked as committed.

    An attempt that ends before it refers to it weakly from then on, so it lives as long as the transaction
    does: an object of the database library's own, rather than one made for this.
    """

    @property
    def is_active(self) -> bool:
        """Whether it is neither committed nor rolled back yet: as long as it is, it may lock the record."""
        ...


NotJoined: TypeAlias = Literal["already", "lost"]


@runtime_checkable
class JoiningStore(Protocol):
    """A store that lives in a database of the caller's and can write in a transaction of theirs."""

    def join(
        self, place: object, claim: Claim, joined: CallersTransaction | None = None
    ) -> CallersTransaction | NotJoined:
        """Marks the record as committed in the caller's transaction: the mark comes about with its COMMIT.

        By the owner only and on a claimed record only, its lease over or not, as long as nobody has taken
        it over. It clears hold; the record is kept for `retention` from now at the least.

        Args:
            place: where the caller's transaction is, such as a session. It begins where none is open.
            claim: whose record is marked.
            joined: the transaction that this claim has joined before, where it is still open: to join that
                one again does nothing, and another one would wait for it for ever.

        Returns:
            The transaction; ``"already"`` where an earlier one has committed this claim's mark; ``"lost"``
            where the claim is not the caller's any more.

        Raises:
            ConfigurationError: the mark would not share the fate of the caller's rows (a savepoint, a
                connection that commits each statement), or the transaction does not see the record as the
                store does: another database, or a snapshot from before the claim.
            StoreUnavailable: the database did not carry it out; the whole transaction may be tried again.
        """
        ...


@runtime_checkable
class EvictingStore(Protocol):
    """A store that drops answers when it is short of room (never facts), and says so."""

    def add_listener(self, listener: Callable[[Identity], None]) -> None:
        """Has it called, beside any others, with each identity whose answer was dropped: after the fact and
        outside of any lock. What it raises is logged.
        """
        ...


@runtime_checkable
class PacedStore(Protocol):
    """A store that knows how large one step of a sweep may be before others wait for it."""

    sweep_batch: int
    """Records in one step."""
