"""The engine drives the machine over a store: reserve, decide, run; no rule of its own.

`begin` claims an identity and returns an `Attempt`, or a `Replay` of what is kept; a refusal is an error.
`run` does the whole of it around one call. One token is drawn for each `begin` and used in every step of
its loop, so an acknowledgement that got lost is recognised as one's own claim. What is done outside of any
request, set-up and an operator's verbs, stands in `desk`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self, TypeGuard, TypeVar

from idemcore import events, machine
from idemcore.alarms import Alarms
from idemcore.announcer import Announcer
from idemcore.attempt import Attempt
from idemcore.codec import Codec
from idemcore.current import runs_within
from idemcore.desk import OperatorDesk
from idemcore.errors import (
    ConfigurationError,
    IdempotencyError,
    InProgress,
    RecordUnreadable,
    StoreUnavailable,
)
from idemcore.identity import Identity, Scope, identify
from idemcore.keeper import Keeper
from idemcore.machine import Fingerprinter, PlainFingerprint
from idemcore.policy import Policy
from idemcore.record import Claim, Record, State, UnreadableRecord, read_outcome
from idemcore.refusal import Refusal, refusal_error
from idemcore.running import TOO_DEEP, Result, replayed, run_once
from idemcore.settling import Replay
from idemcore.stores.base import EvictingStore, Store
from idemcore.stores.open import open_store
from idemcore.waiting import MAX_WAITERS, Wait, WaitingRoom

T = TypeVar("T")

MAX_LOST_RACES: Final = 50
MAX_FINGERPRINT_CHARACTERS: Final = 1024
"""What every store holds; those of `fingerprint()` have about 50."""


class Engine(OperatorDesk):
    """Protects operations over one store. Safe to share between threads; make one for each process.

    Args:
        store: a store, or a URL such as ``sqlite:///payments.db`` or ``memory://``. May come later, by
            `bind`.
        policy: for every use that gives none of its own; on HTTP for each option that is not given.
        observers: callables that take an `events.Event`; `events.log_events` by default.
        max_waiters: how many callers may wait for a run in progress at a time, where a policy has them
            wait; whoever comes then is refused at once.
        monotonic, sleep: the clock, for tests. Seconds.
    """

    def __init__(
        self,
        store: Store | str | None = None,
        *,
        policy: Policy | None = None,
        observers: Iterable[events.Observer] = (events.log_events,),
        max_waiters: int = MAX_WAITERS,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(policy if policy is not None else Policy(), Announcer(observers), sleep)
        self._monotonic = monotonic
        self._waiting_room = WaitingRoom(max_waiters, monotonic, sleep)
        self.alarms: Final = Alarms(self.emit)
        """Says of a record, once, that it waits for a person."""
        self._bound: Keeper | None = None  # which has the store
        self._owned = False
        self._closed = False
        if store is not None:
            self.bind(store)

    def bind(self, store: Store | str, *, table: str | None = None, schema: str | None = None) -> None:
        """Gives the engine its store, once; an application factory calls this when it knows its settings.

        Args:
            store: a store, or a URL.
            table: in the database that a URL names, where it has another name than ``idempotency_records``.
            schema: that holds the table, likewise.

        Raises:
            ConfigurationError: it has one already, or the URL names no store we know, or none with tables.
        """
        if self._bound is not None:
            raise ConfigurationError("This engine has its store already; make another Engine for another.")
        if not isinstance(store, str) and not callable(getattr(store, "reserve", None)):
            raise ConfigurationError(
                f"An engine takes a store or a URL, not {type(store).__name__}. A SQLAlchemy engine of yours "
                "goes in as SQLAlchemyStore(engine), from idemcore.stores.sql."
            )
        if not isinstance(store, str) and (table is not None or schema is not None):
            raise ConfigurationError("table and schema go with a URL; a store has its table already.")
        opened = open_store(store, table, schema) if isinstance(store, str) else store
        self._owned = isinstance(store, str)
        self._bound = Keeper(opened, self.emit, self._monotonic)
        if isinstance(opened, EvictingStore):
            opened.add_listener(lambda identity: self.emit(events.Evicted, identity))

    @property
    def store(self) -> Store:
        """The store.

        Raises:
            ConfigurationError: none is bound yet, or the engine is closed.
        """
        return self._open().store

    @property
    def keeper(self) -> Keeper:
        """What renews this engine's claims."""
        if self._bound is None:
            raise ConfigurationError("This engine has no store yet: call bind(url_or_store) at start-up.")
        return self._bound

    def _open(self) -> Keeper:
        """The keeper, where claims can be made; else the error that says why they cannot."""
        if self._closed:
            raise ConfigurationError("This engine is closed: nothing would renew its claims. Make another.")
        return self.keeper

    def close(self) -> None:
        """Gets pending recordings through if it can, ends its threads, closes a store made from a URL."""
        self._stop_sweeping()
        self._closed = True
        if self._bound is not None:
            self._bound.stop()
            if self._owned:
                self._bound.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def begin(
        self,
        *,
        scope: Scope | None,
        operation: str,
        key: str | None,
        fingerprint: str | Fingerprinter,
        policy: Policy | None = None,
    ) -> Attempt | Replay:
        """Claims the operation, or finds it done.

        Args:
            scope: who is asking: str, int, UUID, a tuple of these, or SINGLE_TENANT.
            operation: which kind of call, such as ``"charge"``; never from the client.
            key: what the caller sent to name this one operation.
            fingerprint: of the request, from `fingerprint()` or `fingerprint_json()`; tells a retry from
                a different request. One of your own: printable ASCII, up to 1,024 characters.
            policy: for this use, instead of the engine's.

        Returns:
            An Attempt to run and settle, or a Replay of the kept outcome.

        Raises:
            CallerError: KeyMissing, KeyInvalid, ScopeMissing, FingerprintMismatch, NotReplayable.
            TryLater: InProgress, StoreUnavailable, StoreFull. Nothing was run.
            OperatorNeeded: OutcomeUnknown, RecordUnreadable, Incomparable.
        """
        if policy is None:
            policy = self.policy
        if isinstance(fingerprint, str):
            if not (fingerprint and fingerprint.isascii() and fingerprint.isprintable()):
                raise ConfigurationError("A fingerprint is a text from fingerprint() or fingerprint_json().")
            fingerprint = PlainFingerprint(fingerprint)
        elif not hasattr(fingerprint, "under"):
            raise ConfigurationError("A fingerprint is a text, or a Fingerprinter of a Canonicalizer.")
        if len(fingerprint.current) > MAX_FINGERPRINT_CHARACTERS:
            raise ConfigurationError(
                f"A fingerprint has up to {MAX_FINGERPRINT_CHARACTERS} characters: take a digest, as "
                "fingerprint() does."
            )
        identity = identify(scope, operation, key, policy.content_of(fingerprint.current))
        return self.claim(identity, fingerprint, policy)

    def claim(
        self, identity: Identity, fingerprinter: Fingerprinter, policy: Policy, *, asks_again: bool = False
    ) -> Attempt | Replay:
        """As `begin`, for whoever has made the identity already, by `identify`.

        Args:
            identity: of the operation.
            fingerprinter: of the request.
            policy: of this claim.
            asks_again: whether the caller keeps asking while another run holds the claim, as a batch does:
                then that is a wait and no refusal, and is said in no event, unless the wait would be for
                the caller itself.
        """
        keeper = self._bound
        if keeper is None or self._closed:
            keeper = self._open()  # which raises
        store, now = keeper.store, self._monotonic
        token = os.urandom(16)
        # As Claim(…) makes it, but for a call of Python's own: this is on the way of every request.
        claim = tuple.__new__(
            Claim,
            (
                identity,
                fingerprinter.current,
                token,
                1,
                policy.lease_seconds,
                policy.max_hold_seconds,
                policy.retention_seconds,
                policy.on_abandoned == "block",
            ),
        )
        lost_races, seen, refused = 0, False, b""
        wait: Wait | None = None
        try:
            while lost_races < MAX_LOST_RACES:
                sent_at = now()
                record = store.reserve(claim)
                if record is None:
                    return self._start(keeper, claim, policy, sent_at)
                seen = True
                match machine.decide(record, fingerprinter, policy, token):
                    case machine.Replayable(record=kept):
                        return self._replay(identity, kept)
                    case machine.Run(attempt=attempt):
                        return self._start(keeper, claim._replace(attempt=attempt), policy, sent_at)
                    case machine.TakeOver(seen_token=seen_token, attempt=attempt):
                        if keeper.record_now(seen_token):
                            continue  # that run was ours, done and only not recorded: look again
                        # The record keeps its fingerprint, so that is what this claim is for from now on.
                        stored = record.fingerprint if isinstance(record, Record) else claim.fingerprint
                        mine = claim._replace(attempt=attempt, fingerprint=stored)
                        sent_at = now()
                        if store.take_over(seen_token, mine):
                            if _is_claimed(record) and seen_token != token:
                                self.emit(events.TakenOver, identity, attempt, record.age)
                            return self._start(keeper, mine, policy, sent_at)
                        locked, refused = machine.locked(record, seen_token, refused), seen_token
                        if locked is None:
                            lost_races += 1
                            continue
                        busy = locked
                    case machine.Reserve():
                        lost_races += 1
                        continue
                    case _ if isinstance(record, Record) and keeper.settle_joined(record.token):
                        continue  # that run was ours, and its transaction has ended: look again
                    case machine.Busy() as busy:
                        pass
                    case refusal:
                        raise self._refusal(refusal, record, identity)
                if wait is None:
                    wait = self._waiting_room.enter(identity, policy)
                if wait is None or not wait.goes_on():
                    raise refusal_error(busy, identity, for_itself=runs_within(identity))
            raise StoreUnavailable(
                "Too many others claimed and released this operation at the same moment; try again.",
                key_digest=identity.digest,
            )
        except StoreUnavailable as error:
            error.nothing_known = not seen and not keeper.knows(identity)
            self.emit(events.StoreFailed, identity, type(error.__cause__ or error).__name__)
            raise
        except IdempotencyError as error:
            if not (asks_again and isinstance(error, InProgress) and not error.for_itself):
                self.emit(events.Refused, identity, error.code)
            raise
        finally:
            if wait is not None:
                wait.leave()

    def _start(self, keeper: Keeper, claim: Claim, policy: Policy, sent_at: float) -> Attempt:
        self.emit(events.Started, claim.identity, claim.attempt)
        return Attempt(keeper, claim, policy, sent_at)

    def _refusal(
        self, refusal: Refusal, record: Record | UnreadableRecord, identity: Identity
    ) -> IdempotencyError:
        """The error, and the alarm where somebody has to look: a killed process raised none itself."""
        match refusal:
            case machine.OutcomeUnknown(reason=reason) if _is_claimed(record):
                self.alarms.in_doubt(identity, record, reason)
            case machine.Unreadable(reason=reason):
                self.alarms.damaged(identity, reason, record)
        return refusal_error(refusal, identity)

    def _replay(self, identity: Identity, record: Record) -> Replay:
        try:
            outcome = read_outcome(record)
        except RecursionError as error:
            raise RecordUnreadable(TOO_DEEP, key_digest=identity.digest) from error
        if outcome is None:
            raise self._refusal(machine.Unreadable("its answer is damaged"), record, identity)
        self.emit(events.Replayed, identity)
        return tuple.__new__(Replay, (outcome,))  # as Replay(…), see `claim`

    def run(
        self,
        fn: Callable[[], T],
        *,
        scope: Scope | None,
        operation: str,
        key: str | None,
        fingerprint: str | Fingerprinter,
        codec: Codec[T],
        policy: Policy | None = None,
    ) -> Result[T]:
        """Runs `fn` once for the operation, or gives back what it returned, or raises what it raised.

        Args:
            fn: called without arguments, at most once.
            scope: as in `begin`.
            operation: as in `begin`.
            key: as in `begin`.
            fingerprint: as in `begin`.
            codec: how its value becomes bytes and comes back, see `idemcore.codec`.
            policy: as in `begin`.

        Raises:
            IdempotencyError: as `begin`; and what `fn` raises, unchanged.
            ConfigurationError: `fn` returned a coroutine, a future or an iterator: the outcome is unknown, for
                what it did is done and more may be to come.
        """
        policy = policy if policy is not None else self.policy
        begun = self.begin(scope=scope, operation=operation, key=key, fingerprint=fingerprint, policy=policy)
        if not isinstance(begun, Replay):
            return run_once(begun, codec, policy, fn)
        try:
            return replayed(begun.outcome, codec, policy)
        except RecordUnreadable as error:
            current = fingerprint if isinstance(fingerprint, str) else fingerprint.current
            identity = identify(scope, operation, key, policy.content_of(current))
            self.alarms.not_given_back(identity, begun.outcome, error)
            raise


def _is_claimed(record: Record | UnreadableRecord) -> TypeGuard[Record]:
    return isinstance(record, Record) and record.state is State.CLAIMED
