"""What a batch has still to do, shared by its workers: each takes an item, claims it, calls and notes the end.

What another process has in hand is put off to the end, and asked for again until it is settled. What makes
going on useless stops all workers: an error that is no Exception, a store that is away, too many failures.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any, Final, TypeAlias

from idemcore import (
    ConfigurationError,
    InProgress,
    NotReplayable,
    OutcomeUnknown,
    RecordUnreadable,
    StoreUnavailable,
)
from idemcore.attempt import Attempt
from idemcore.machine import Settlement
from idemcore.settling import Replay
from idemcore.timed_get import timed_get

from .operation import Asked, Operation
from .report import Item

Todo: TypeAlias = tuple[Item[Any, Any], Asked]

_LOOK: Final = 0.1
"""Seconds between two looks at the workers, which is also how often the progress line is drawn."""
_STANDING: Final = timedelta(milliseconds=500)
"""How long one look at a standing claim lasts; between two, the batch can be stopped."""
_RECORDS_WITHIN: Final = 10.0
"""Seconds that a batch which has ended waits for records that could not be written at once."""
_BETWEEN_LOOKS: Final = 0.2
_BREATH: Final = 0.02
_STORE_TRIES: Final = 5
_STORE_AWAY: Final = 2
"""Items in a row whose tries found no store: one may be locked by somebody, two mean that the store is away."""
_CHANGED: Final = (
    "The item changed after it was read, so it was not run: its key would not be that of what it asks for "
    "now. Give a new object for each item, and let nothing change one before its turn."
)


class Workload:
    """The items still to do.

    Args:
        operation: to call for each item.
        first: arguments before the item.
        named: arguments by keyword.
        todo: the items, each with what it asks for.
        max_failures: after how many no further item is begun; None for any number.

    Attributes:
        broken: what stopped the batch that is no Exception.
    """

    def __init__(
        self,
        operation: Operation,
        first: tuple[Any, ...],
        named: dict[str, Any],
        todo: Iterable[Todo],
        max_failures: int | None,
    ) -> None:
        self._stop = threading.Event()
        self.broken: BaseException | None = None
        self._operation = operation
        self._first = first
        self._named = named
        self._fresh = deque(todo)
        self._later: deque[Todo] = deque()
        self._failures_left = max_failures
        self._without_store = 0
        self._put_off: list[tuple[Item[Any, Any], Attempt]] = []
        self._lock = threading.Lock()
        self._entered: list[None] = []
        self._left: list[None] = []
        self._leaving: SimpleQueue[None] = SimpleQueue()
        self._at_once = replace(operation.policy, wait=timedelta(0))
        self._waiting = replace(operation.policy, wait=_STANDING)

    def work(self) -> None:
        """What each thread does: the fresh items first, then those that others had in hand."""
        self._entered.append(None)  # before it looks at `_stop`, which settle() relies on
        try:
            for queue, patient in ((self._fresh, False), (self._later, True)):
                while not self._stop.is_set():
                    try:
                        todo = queue.popleft()
                    except IndexError:
                        break
                    self._call(todo, patient=patient)
        finally:
            self._left.append(None)
            self._leaving.put(None)

    def ended(self, workers: int) -> bool:
        """Whether so many workers have ended; looks again after a while, or as soon as one ends.

        A thread's own word does not count: up to CPython 3.12 a join that a signal interrupts marks a
        thread as ended that runs on. What the workers wrote down does, and the queue only wakes.
        """
        if len(self._left) < workers:
            with suppress(Empty):
                timed_get(self._leaving, _LOOK)
        return len(self._left) >= workers

    def settle(self) -> None:
        """Begins no further item and waits for those under way, whatever signals come meanwhile.

        A worker that enters after `_stop` was set finds it set, and so takes no item. Such a one may enter and
        leave while another still works: only where nobody entered meanwhile have all left that had entered.
        """
        while True:
            try:
                self._stop.set()
                entered = len(self._entered)
                if self.ended(entered) and len(self._entered) == entered:
                    return
            except (KeyboardInterrupt, SystemExit):  # said once is enough
                continue

    def look_for_records(self) -> None:
        """Waits a while for what could not be recorded at once; then says which items have no record.

        A store that is away takes its whole time limit to say so, and the time is over before all were asked.
        """
        waiting = self._put_off
        for item, _ in waiting:
            item.unrecorded = True
        ends = monotonic() + _RECORDS_WITHIN
        while waiting:
            for item, attempt in waiting:
                item.unrecorded = not attempt.has_record()
                if monotonic() >= ends:
                    return
            waiting = [(item, attempt) for item, attempt in waiting if item.unrecorded]
            if waiting:
                sleep(_BETWEEN_LOOKS)

    def _call(self, todo: Todo, *, patient: bool) -> None:
        item, _ = todo
        begun = self._begin(todo, patient=patient)
        self._stop_without_store(found=begun is not None or not isinstance(item.error, StoreUnavailable))
        if begun is None:
            return
        # From here on every error is the function's own, also one that a nested call of its was refused with.
        try:
            result = self._operation.finish(begun, (*self._first, item.item), self._named)
        except BaseException as error:
            if isinstance(error, RecordUnreadable) and _is_done(begun):
                item.status, item.error = "replayed", error
                return
            settlement = self._operation.settlement_after(begun, error)
            item.final = settlement is Settlement.KEEP
            self._failed(item, error, in_doubt=settlement is Settlement.UNKNOWN, ran=True)
        else:
            item.value, item.error = result.value, None
            item.status = "replayed" if result.replayed else "done"
        if isinstance(begun, Attempt) and begun.put_off and (item.status != "failed" or item.final):
            self._put_off.append((item, begun))

    def _begin(self, todo: Todo, *, patient: bool) -> Attempt | Replay | None:
        """Claims the item or finds it done; None where neither was to be had, and the item says why."""
        item, asked = todo
        policy = self._waiting if patient else self._at_once
        store_tries = 0
        try:
            changed = not self._operation.asks_for((*self._first, item.item), self._named, asked)
        except Exception:  # it cannot even be read any more
            changed = True
        if changed:
            self._failed(item, ConfigurationError(_CHANGED, key_digest=item.digest))
            return None
        while not self._stop.is_set():
            try:
                return self._operation.begin(asked, policy, asks_again=True)
            except InProgress as error:
                if error.for_itself:
                    self._failed(item, error)
                    return None
                item.error = error
                if not patient:
                    self._later.append(todo)
                    return None
                self._stop.wait(_BREATH)  # the engine lets so many wait and refuses the others at once
            except StoreUnavailable as error:
                item.error = error
                store_tries += 1
                if store_tries == _STORE_TRIES:
                    self._failed(item, error)
                    return None
                self._stop.wait(error.retry_after * (store_tries - 1))
            except NotReplayable as error:
                item.status, item.error = "replayed", error
                return None
            except BaseException as error:
                self._failed(item, error, in_doubt=isinstance(error, OutcomeUnknown))
                return None
        return None

    def _stop_without_store(self, *, found: bool) -> None:
        with self._lock:
            self._without_store = 0 if found else self._without_store + 1
            if self._without_store == _STORE_AWAY:
                self._stop.set()

    def _failed(
        self, item: Item[Any, Any], error: BaseException, *, in_doubt: bool = False, ran: bool = False
    ) -> None:
        item.error, item.status = error, "unknown" if in_doubt else "failed"
        with self._lock:
            if not isinstance(error, Exception):
                self.broken = error
                self._stop.set()
            # What was refused is no word of the provider's, and would starve each batch until somebody looks.
            if self._failures_left is not None and ran and not item.final:
                self._failures_left -= 1
                if self._failures_left <= 0:
                    self._stop.set()


def _is_done(begun: Attempt | Replay) -> bool:
    """Whether nothing was run, since the operation is done and did not end by an exception."""
    return isinstance(begun, Replay) and begun.outcome.kind != "raised"
