"""The engine's side that faces an operator: set up a store, look at records, settle them, free keys, sweep.

No request is under way here. What is decided about a record holds for the one that was looked at, by its
token; one that has moved on since is left alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final, Literal

from idemcore import events
from idemcore.announcer import Announcer
from idemcore.errors import AlreadyCommitted, ConfigurationError
from idemcore.identity import Identity
from idemcore.keeper import Keeper
from idemcore.policy import Policy
from idemcore.record import KINDS, Answer, Record, State, Swept, Tombstone, UnreadableRecord
from idemcore.stores.base import PacedStore, Store, Verdict
from idemcore.sweeper import Sweeper

_BATCH: Final = 1000
"""Records in one step of a sweep, where the store has no number of its own."""

_VERDICT: Final = timedelta(days=30)
"""How long a verdict is kept at the least: the record does not say how long its operation is remembered."""


class OperatorDesk(ABC):
    """What `Engine` offers outside of any request."""

    def __init__(self, policy: Policy, emit: Announcer, sleep: Callable[[float], None]) -> None:
        self.policy: Final = policy
        self.emit: Final = emit
        self._sleep = sleep
        self._sweeper: Sweeper | None = None

    @property
    @abstractmethod
    def store(self) -> Store:
        """The store."""

    @property
    @abstractmethod
    def keeper(self) -> Keeper:
        """What renews this engine's claims."""

    def create_schema(self) -> None:
        """Makes the store's tables where they are missing; safe from several processes at once."""
        self.store.create_schema()

    def check(self) -> None:
        """Fails now, at start-up, with what is wrong with the store or its set-up."""
        self.store.check()

    def get(self, identity: Identity) -> Record | UnreadableRecord | None:
        """The record under an identity, for operators and tests; its `token` is what `resolve` asks for.

        Args:
            identity: from `identify`, or from ``key_of(function)(...)``.
        """
        return self.store.get(identity)

    def resolve(
        self,
        identity: Identity,
        seen_token: bytes,
        verdict: Answer | Literal["not_done", "done"],
        *,
        retention: timedelta | None = None,
    ) -> bool:
        """Settles an outcome that no run will, as an operator found it, by compare-and-set: an unknown or
        abandoned one, or that of a run which died after its transaction was committed (`Attempt.join`). A
        released record, which a retry may run again, is closed so by ``"done"`` or an Answer.

        Args:
            identity: as in `get`.
            seen_token: of the record that was looked at; a record that has moved on is left alone.
            verdict: ``"not_done"`` lets the same request run again; ``"done"`` answers its retries with
                NotReplayable; an Answer is given back to them (see `idemcore.http.kept_answer`).
            retention: how long the settled record is kept from now at the least; 30 days, or as the
                engine's policy where that is longer. Say it where the operation's own is longer still. A
                record that is kept for longer already stays so.

        Returns:
            True if it was applied; False if the record has moved on, or its lease stands: look again.

        Raises:
            AlreadyCommitted: ``"not_done"`` of work whose transaction was committed. Its record stays as it
                is: a second run would write its rows again.
        """
        to: Verdict
        if isinstance(verdict, Answer):
            if verdict.kind not in KINDS or not isinstance(verdict.body, bytes):
                raise ConfigurationError(f"An Answer has bytes as body, and as kind one of {', '.join(KINDS)}.")
            to, name = verdict, "done_with_answer"
        elif verdict == "done":
            to, name = Tombstone("resolved_as_done"), verdict
        elif verdict == "not_done":
            to, name = "released", verdict
        else:
            raise ConfigurationError("A verdict is 'not_done', 'done' or an Answer.")
        kept = retention if retention is not None else max(self.policy.retention, _VERDICT)
        applied = self.store.resolve(identity, seen_token, to, kept.total_seconds())
        if applied:
            self.emit(events.Resolved, identity, name)
        elif to == "released":
            self._refuse_if_committed(identity, seen_token)
        return applied

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        """Frees a key whatever its record says, as an operator decided: the next request under it runs, and
        does again what is done.

        Args:
            identity: as in `get`.
            seen_token: of the record that was looked at.

        Returns:
            True if nothing stands under the key now; False if the record has moved on or its lease stands.
        """
        gone = self.store.forget(identity, seen_token)
        if gone:
            self.emit(events.Resolved, identity, "forgotten")
        return gone

    def _refuse_if_committed(self, identity: Identity, seen_token: bytes) -> None:
        record = self.store.get(identity)
        if isinstance(record, Record) and record.state is State.COMMITTED and record.token == seen_token:
            raise AlreadyCommitted(
                "This run's transaction was committed, so its work is done and must not run again. Say 'done', "
                "or give its answer, once its lease is over.",
                key_digest=identity.digest,
            )

    def sweep(self, *, batch: int | None = None, pause: float = 0.02) -> Swept:
        """Removes what is past its retention, in batches, so that nobody waits for long.

        Args:
            batch: records in one; by default what was measured to be right for the kind of store.
            pause: seconds between two.

        Returns:
            How many finished records and how many abandoned claims went, and which these were. Each
            abandoned one is an effect that may have happened and was never recorded, and an event.
        """
        finished = 0
        lost: list[Identity] = []
        for swept in self.sweep_batches(batch=batch, pause=pause):
            finished += swept.finished
            lost += swept.lost
        return Swept(finished, len(lost), tuple(lost))

    def sweep_batches(self, *, batch: int | None = None, pause: float = 0.02) -> Iterator[Swept]:
        """As `sweep`, giving what each batch removed as it is done, for whoever watches or may want to stop."""
        if batch is None:
            batch = self.store.sweep_batch if isinstance(self.store, PacedStore) else _BATCH
        while True:
            swept = self.store.sweep(batch)
            for identity in swept.lost:
                self.emit(events.Abandoned, identity)
            yield swept
            if swept.removed < batch:
                return
            self._sleep(pause)

    def sweep_in_background(self, *, every: timedelta = timedelta(hours=1)) -> None:
        """Sweeps now and then in a daemon thread of this process, for programs that no cron looks after.

        Each sweep falls at a random moment of its interval, so that workers which start together do not
        sweep together. What fails is an event `SweepFailed`, and the next sweep tries again; `close` ends the
        thread after the batch in hand. A forked child sweeps from its first claim on. Called again, the new
        interval counts.

        Args:
            every: the time between two sweeps of this process, on the average.
        """
        if not isinstance(every, timedelta) or every <= timedelta(0):
            raise ConfigurationError("every is a datetime.timedelta longer than zero.")
        keeper = self.keeper
        self._stop_sweeping()
        self._sweeper = Sweeper(self.sweep_batches, self.emit, every.total_seconds())
        keeper.starts_too = self._sweeper.start
        self._sweeper.start()

    def _stop_sweeping(self) -> None:
        if self._sweeper is not None:
            self._sweeper.stop()
