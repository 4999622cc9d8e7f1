"""Does a call of yours happen once? It is called, retried, raced and killed, and your own count decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from idemcore.engine import Engine
from idemcore.errors import InProgress, OutcomeUnknown
from idemcore.record import Claim, Record
from idemcore.stores.memory import MemoryStore
from idemcore.testing.clock import FakeClock
from idemcore.testing.switches import use_store

_KILLED: Final = b"a killed process"
_LEASE: Final = 60.0


class RanTwice(AssertionError):
    """What the check found; the text says in which situation and how often."""


def assert_idempotent(
    call: Callable[[], object], *, engine: Engine, effects: Callable[[], int], threads: int = 8
) -> None:
    """Checks that one operation has its effect once, whatever happens to it.

    It is called, then retried; called from several threads at once; and taken over from a run that was
    killed before it did anything. Each time in a fresh store under `engine`, whose own stays untouched.
    It does not kill between the effect and its record: there ``rerun`` repeats the effect, and only a
    provider's own idempotency (``child_key``), ``join`` or ``on_abandoned="block"`` helps.

        assert_idempotent(lambda: charge(invoice()), engine=idem, effects=lambda: len(network.charges))

    Args:
        call: calls your function, or posts to your view: the same operation each time. Make its arguments
            anew in each call, as a retry would.
        engine: that protects it.
        effects: how many effects there have been, counted outside of what is tested.
        threads: how many race.

    Raises:
        RanTwice: in one of these situations the effects were not those of one run.
    """
    once = _effects_of_one_run(call, engine, effects)
    _retry(call, engine, effects, once)
    _race(call, engine, effects, once, threads)
    _takeover(call, engine, effects, once)


def _effects_of_one_run(call: Callable[[], object], engine: Engine, effects: Callable[[], int]) -> int:
    with use_store(engine, MemoryStore()) as store:
        before = effects()
        call()
        once = effects() - before
        kept = store.find(limit=2)
    if once < 1:
        raise RanTwice("The call had no effect that `effects` counts, so nothing can be told.")
    if not kept:
        raise RanTwice("The call left no record: it is not protected by this engine, or gave its claim up.")
    return once


def _retry(call: Callable[[], object], engine: Engine, effects: Callable[[], int], once: int) -> None:
    with use_store(engine, MemoryStore()):
        before = effects()
        first = call()
        again = call()
        _must_be("a retry ran it again: is its key the same in each call?", effects() - before, once)
    if _told(again) != _told(first):
        raise RanTwice(f"a retry got another result: {type(again).__name__}, first {type(first).__name__}.")


def _told(result: object) -> object:
    """What a caller was told: of a test client's response its status and body, for the object itself is new."""
    status, body = getattr(result, "status_code", None), getattr(result, "data", None)
    return (status, body) if isinstance(status, int) and isinstance(body, bytes) else result


def _race(
    call: Callable[[], object], engine: Engine, effects: Callable[[], int], once: int, threads: int
) -> None:
    together = threading.Barrier(threads)
    raised: list[BaseException] = []

    def enter() -> None:
        together.wait()
        try:
            call()
        except InProgress:
            pass
        except BaseException as error:
            raised.append(error)

    with use_store(engine, MemoryStore()):
        before = effects()
        racers = [threading.Thread(target=enter) for _ in range(threads)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        _must_be(f"{threads} calls at once ran it more than once", effects() - before, once)
    if raised:
        raise raised[0]


def _takeover(call: Callable[[], object], engine: Engine, effects: Callable[[], int], once: int) -> None:
    clock = FakeClock()
    with use_store(engine, MemoryStore()) as store:
        call()
        (found,) = store.find(limit=1)
    identity, done = found.identity, found.record
    if not isinstance(done, Record):
        raise RanTwice("The call left a record that cannot be read.")
    with use_store(engine, MemoryStore(clock=clock)) as store:
        # As a process leaves it that was killed between its claim and its work.
        store.reserve(
            Claim(identity, done.fingerprint, _KILLED, 1, _LEASE, 2 * _LEASE, 99 * _LEASE, hold=False)
        )
        clock.advance(2 * _LEASE)
        before = effects()
        try:
            call()
        except OutcomeUnknown:  # under block it waits for an operator; looked at below
            pass
        now = store.get(identity)
        blocked = isinstance(now, Record) and now.token == _KILLED
        _must_be("the takeover of a killed run", effects() - before, 0 if blocked else once)
        if not blocked:
            call()
            _must_be("a retry after a takeover ran it again", effects() - before, once)


def _must_be(what: str, seen: int, expected: int) -> None:
    if seen != expected:
        raise RanTwice(f"{what} ({seen} effects, where one run has {expected}).")
