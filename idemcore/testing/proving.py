"""Does a call of yours happen once? It is called, retried, raced and killed, and your own count decides."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from idemcore.engine import Engine
from idemcore.errors import ConfigurationError, InProgress, OutcomeUnknown
from idemcore.record import Claim, Record
from idemcore.stores.base import Store
from idemcore.stores.memory import MemoryStore
from idemcore.testing.logged import LoggedError
from idemcore.testing.switches import use_store

_KILLED: Final = b"a killed process"
_LEASE: Final = 0.02
"""Seconds; of the run that was killed, so it is over at once whatever clock the store goes by."""
_RETENTION: Final = 3600.0
_PAGE: Final = 100

_Calls = Callable[[], object]


class RanTwice(AssertionError):
    """What the check found; the text says in which situation and how often."""


def assert_idempotent(
    call: Callable[[], object],
    *,
    engine: Engine,
    effects: Callable[[], int],
    store: Store | None = None,
    threads: int = 8,
) -> None:
    """Checks that one operation has its effect once, whatever happens to it.

    It is called, then retried; called from several threads at once; and taken over from a run that was
    killed before it did anything. Each time in an empty store under `engine`, whose own stays untouched.
    It does not kill between the effect and its record: there ``rerun`` repeats the effect, and only a
    provider's own idempotency (``child_key``), ``join`` or ``on_abandoned="block"`` helps.

        assert_idempotent(lambda: charge(invoice()), engine=idem, effects=lambda: len(network.charges))

    Args:
        call: calls your function, or posts to your view: the same operation each time. Make its arguments
            anew in each call, as a retry would.
        engine: that protects it.
        effects: how many effects there have been, counted outside of what is tested.
        store: empty, for code that joins: on the database of its rows. It is emptied between the situations
            and at the end; your own rows stay, so the effect must be one that can come again. A fresh
            MemoryStore each time where it is not given.
        threads: how many race.

    Raises:
        RanTwice: in one of these situations the effects were not those of one run, or the call answered 5xx.
        ConfigurationError: `store` holds records already.
    """
    if store is not None and store.find(limit=1):
        raise ConfigurationError("assert_idempotent empties the store that it is given: give it an empty one.")
    proof = _Proof(_answered(call), engine, effects, store)
    once = proof.effects_of_one_run()
    proof.retry(once)
    proof.race(once, threads)
    proof.takeover(once)


def _answered(call: _Calls) -> _Calls:
    """The call, whose 5xx is an error: a test client has swallowed what was raised, and a view that breaks
    runs again by right, which is no finding about its protection.
    """

    def answered() -> object:
        with LoggedError() as logged:
            result = call()
        status = getattr(result, "status_code", None)
        if isinstance(status, int) and status >= 500:
            cause = logged.error
            why = f", for {type(cause).__name__}: {cause}" if cause is not None else ""
            raise RanTwice(f"The call answered {status}{why}; give one that succeeds.") from cause
        return result

    return answered


class _Proof:
    """The situations, one by one, each in an empty store."""

    def __init__(self, call: _Calls, engine: Engine, effects: Callable[[], int], store: Store | None) -> None:
        self._call, self._engine, self._effects, self._store = call, engine, effects, store

    @contextmanager
    def _emptied(self) -> Iterator[Store]:
        store = self._store if self._store is not None else MemoryStore()
        with use_store(self._engine, store):
            try:
                yield store
            except BaseException:
                with suppress(Exception):  # what was found is to be told, and not what stands in the way here
                    self._empty()
                raise
            self._empty()

    def effects_of_one_run(self) -> int:
        with self._emptied() as store:
            before = self._effects()
            self._call()
            once = self._effects() - before
            kept = store.find(limit=1)
        if once < 1:
            raise RanTwice("The call had no effect that `effects` counts, so nothing can be told.")
        if not kept:
            raise RanTwice("The call left no record: it is not protected by this engine, or gave its claim up.")
        return once

    def retry(self, once: int) -> None:
        with self._emptied():
            before = self._effects()
            first, again = self._call(), self._call()
            _must_be("a retry ran it again: is its key the same in each call?", self._effects() - before, once)
        if _told(again) != _told(first):
            raise RanTwice(f"a retry got another result: {type(again).__name__}, first {type(first).__name__}.")

    def race(self, once: int, threads: int) -> None:
        together = threading.Barrier(threads)
        raised: list[BaseException] = []

        def enter() -> None:
            together.wait()
            try:
                self._call()
            except InProgress:
                pass
            except BaseException as error:
                raised.append(error)

        with self._emptied():
            before = self._effects()
            racers = [threading.Thread(target=enter) for _ in range(threads)]
            for racer in racers:
                racer.start()
            for racer in racers:
                racer.join()
            _must_be(f"{threads} calls at once ran it more than once", self._effects() - before, once)
        if raised:
            raise raised[0]

    def takeover(self, once: int) -> None:
        with self._emptied() as store:
            self._call()
            (found,) = store.find(limit=1)
        identity, done = found.identity, found.record
        if not isinstance(done, Record):
            raise RanTwice("The call left a record that cannot be read.")
        with self._emptied() as store:
            # As a process leaves it that was killed between its claim and its work.
            killed = Claim(identity, done.fingerprint, _KILLED, 1, _LEASE, _LEASE, _RETENTION, hold=False)
            store.reserve(killed)
            while isinstance(now := store.get(identity), Record) and now.lease_stands:
                time.sleep(_LEASE)
            before = self._effects()
            try:
                self._call()
            except OutcomeUnknown:  # under block it waits for an operator; looked at below
                pass
            now = store.get(identity)
            blocked = isinstance(now, Record) and now.token == _KILLED
            _must_be("the takeover of a killed run", self._effects() - before, 0 if blocked else once)
            if not blocked:
                self._call()
                _must_be("a retry after a takeover ran it again", self._effects() - before, once)

    def _empty(self) -> None:
        while self._store is not None and (page := self._store.find(limit=_PAGE)):
            for identity, record in ((found.identity, found.record) for found in page):
                if not isinstance(record, Record) or not self._store.forget(identity, record.token):
                    raise ConfigurationError("A record of the call's cannot be removed: is its run under way?")


def _told(result: object) -> object:
    """What a caller was told: of a test client's response its status and body, for the object itself is new."""
    status, body = getattr(result, "status_code", None), getattr(result, "data", None)
    return (status, body) if isinstance(status, int) and isinstance(body, bytes) else result


def _must_be(what: str, seen: int, expected: int) -> None:
    if seen != expected:
        raise RanTwice(f"{what} ({seen} effects, where one run has {expected}).")
