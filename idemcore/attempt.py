"""One run of an operation, from its claim to its settlement; every way out is one method here.

What the work led to decides how it is settled: `machine.settle` says what becomes of the claim, and
`settling` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from idemcore import events
from idemcore.child_key import child_key
from idemcore.current import CURRENT, leave
from idemcore.errors import ConfigurationError, LeaseLost
from idemcore.identity import Identity
from idemcore.joining import join
from idemcore.keeper import Keeper
from idemcore.machine import Ending, ending_of
from idemcore.meta import DEEPEST, encode_meta
from idemcore.policy import Policy
from idemcore.raised import encode_exception, is_whole
from idemcore.record import KINDS, Answer, Claim, Kind, Tombstone
from idemcore.settling import Replay, Settling, storable

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session, scoped_session

_INTERRUPTED: Final = Tombstone("interrupted")


class Attempt(Settling):
    """A claim to run the operation now. Use it as a context manager, or settle it by its methods.

    Leaving the ``with`` block by an exception settles by the policy; leaving it unsettled is an error
    and leaves a tombstone, since the work may be done.

    Attributes:
        identity: what is claimed.
        number: 1 for the first run; above it, earlier ones did not finish.
        outer: the attempt in whose run this one was begun; None in the usual case.
    """

    __slots__ = ("_context", "outer")

    def __init__(self, keeper: Keeper, claim: Claim, policy: Policy, claimed_at: float) -> None:
        self._context: Token[Attempt | None] | None = None
        self.outer: Final[Attempt | None] = CURRENT.get(None)
        super().__init__(keeper, claim, policy, claimed_at)

    @property
    def identity(self) -> Identity:
        """What is claimed."""
        return self._claim.identity

    @property
    def fingerprint(self) -> str:
        """Of the request that the claim is for."""
        return self._claim.fingerprint

    @property
    def number(self) -> int:
        """Which run this is, from 1."""
        return self._claim.attempt

    def complete(
        self,
        body: bytes,
        meta: Mapping[str, object] | None = None,
        *,
        kind: Kind = "returned",
        refused: bool = False,
    ) -> Replay | None:
        """Records the answer, to be given back to every true retry.

        Args:
            body: the answer's bytes.
            meta: JSON beside it, up to 100 levels deep.
            kind: what the bytes are: ``returned``, ``raised`` or ``http``.
            refused: whether the answer says that nothing was done, such as an HTTP 4xx that is kept: then a
                transaction that was joined and rolled back is as it should be, and no event.

        Returns:
            None: this answer stands, or stands as far as it can be told now (where recording failed it
            is retried, see `events.RecordingFailed`). A Replay: this attempt was late and another one's
            answer to the same request stands; give that to the caller.
        """
        if meta or type(body) is not bytes or kind not in KINDS:
            return self.finish(_INTERRUPTED, lambda: _answer(kind, meta, body), refused=refused)
        # As Answer(…) makes it, but for a call of Python's own: this is on the way of every request.
        return self.finish(tuple.__new__(Answer, (kind, b"", body)), refused=refused)

    def tombstone(self, reason: str) -> Replay | None:
        """Records that the work is done and its answer is not kept, for `reason`; returns as `complete`."""
        return self.finish(_INTERRUPTED, lambda: Tombstone(storable(reason)))

    def refuse(self) -> None:
        """The operation turned the request down and did nothing, as an HTTP 4xx says."""
        self._leave(Ending.REFUSAL)

    def release(self) -> None:
        """Nothing was done: the same request may run again at once."""
        self._leave(Ending.RELEASE)

    def forget(self) -> None:
        """Nothing was done: the key is free, for another request too. After the first attempt, as `release`."""
        self._leave(Ending.FORGET)

    def unknown(self, why: str) -> None:
        """It is open whether the work was done: nothing runs under this key until `Engine.resolve`."""
        self._leave(Ending.DOUBT, why)

    def fail(self, error: BaseException | None = None, *, reason: str = "") -> Replay | None:
        """The work ended by an exception, or by an answer that is a failure; the policy decides.

        Args:
            error: what was raised: kept, if the policy's `keep` names it; in doubt, if `unknown` does,
                or does it by a class nearer to the error's own. Of a group that neither names, what is in
                it decides: in doubt if one is, kept if all are.
            reason: a short word instead of an exception, such as ``status_500``.
        """
        if error is None:
            self._leave(Ending.FAILURE, reason)
            return None
        ending = ending_of(error, self._policy)
        if ending is Ending.SUCCESS:
            return self.finish(_INTERRUPTED, lambda: self._raised(error), waits=True)
        self._leave(ending, type(error).__name__)
        return None

    def _raised(self, error: BaseException) -> Answer | Tombstone:
        try:
            body = encode_exception(error)
        except Exception:
            # A text or an attribute of it that raises itself: the caller has the exception, retries are told.
            return Tombstone("not_encodable")
        if not is_whole(body):  # else nobody would know before the first retry, whose `except` misses it
            self._keeper.emit(events.AnswerNotKept, self.identity, self.number, "not_rebuildable")
        return Answer("raised", b"", body)

    def renew(self) -> None:
        """Extends the lease by its length from now; long work may call it at will.

        Raises:
            LeaseLost: the claim is not ours any more, or `max_hold` is used up. Stop, if you can.
            StoreUnavailable: the store did not answer; the claim may still stand.
            ConfigurationError: a transaction that it has joined is open, which keeps everybody else out.
        """
        if self.is_held:
            raise ConfigurationError(
                "The transaction that this attempt has joined is still open: end it before you renew the claim."
            )
        left = self._keeper.store.renew(self._claim) if not self._inherited else None
        if left is None or left <= 0:
            raise LeaseLost(
                "This run has lost its claim: its lease ended"
                + (" at max_hold" if left is not None else " and another run may have started")
                + ". What it does from here on may be done twice.",
                key_digest=self.identity.digest,
            )
        self._keeper.renewed(self, left)

    def join(self, session_or_connection: Session | scoped_session[Any] | Connection) -> None:
        """Lets the record share the fate of your own transaction: once that is committed, nothing runs again.

        One statement in the transaction marks the record; your rows and the mark are committed or rolled
        back together. Commit before the attempt is completed, which turns the mark into the answer; should
        the process die in between, a retry gets `NotReplayable`, never a second run; an operator may give its
        answer, by `Engine.resolve`.

        A rollback takes the mark along. Join again after every rollback, in a loop that tries again too: rows
        that are committed without a mark may come a second time. An attempt that is completed so is announced,
        by the event `MarkRolledBack`.

        Args:
            session_or_connection: of SQLAlchemy, on the store's own database: a session, a scoped session
                such as Flask-SQLAlchemy's, or a Core connection. At the top level, in no savepoint.

        Raises:
            LeaseLost: another run has the claim. Let it leave your transaction, which rolls your rows back.
            AlreadyCommitted: an earlier transaction of this run was committed, though its commit may have
                looked failed. Let it leave your transaction likewise: the rows are there already.
            ConfigurationError: the store has no transactions, or the mark would not share the fate of your
                rows; the message says which.
            StoreUnavailable: the database did not carry it out; you may run the whole transaction again.
        """
        self._require_unsettled()
        self._joined = join(self._keeper.store, self._claim, session_or_connection, self._joined)

    def child_key(self, name: str) -> str:
        """A key for a provider's own idempotency, the same in every attempt of this operation.

        Args:
            name: which call to a provider, unique within the operation, such as ``"charge"``.

        Returns:
            36 characters in UUID form (RFC 9562, version 8): stable over retries, takeovers, releases
            and changes of the fingerprint rule; different for each name, scope, operation and key.
        """
        return str(UUID(bytes=child_key(self.identity, name)))

    def __enter__(self) -> Self:
        self._context = CURRENT.set(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._settle_left(error)
        finally:
            context, self._context = self._context, None
            if context is not None:
                leave(self, context)

    def _settle_left(self, error: BaseException | None) -> None:
        """The ``with`` block is left, by an exception or without one."""
        if self.settled:
            return
        if error is not None:
            self.fail(error)
            return
        if self.is_held:  # its transaction may yet be rolled back, and then nothing was done
            self.release()
            raise ConfigurationError(
                "The attempt was left unsettled, and before the transaction that it has joined was committed: "
                "commit inside the with block, then complete the attempt. The record is settled after the "
                "transaction's end, as that turns out."
            )
        self.tombstone("unsettled")
        raise ConfigurationError(
            "The attempt was left unsettled: call complete(), release(), forget(), unknown() or "
            "tombstone() inside the with block. It was recorded as done without an answer."
        )

    def __repr__(self) -> str:
        return f"Attempt(#{self.identity.digest}, number={self.number})"


def _answer(kind: Kind, meta: Mapping[str, object] | None, body: bytes) -> Answer:
    try:
        if kind not in KINDS:
            raise ValueError(f"there is no kind {kind!r}")
        kept = body if type(body) is bytes else bytes(memoryview(body))
        return Answer(kind, encode_meta(meta) if meta else b"", kept)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"complete() takes bytes, JSON values up to {DEEPEST} levels deep as meta, and as kind one of "
            f"{', '.join(KINDS)}; the work is recorded as done without answer."
        ) from error
