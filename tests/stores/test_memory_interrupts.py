"""An exception from a signal handler in the middle of a verb: the store goes on with whole books."""

from __future__ import annotations

import sys
from random import Random

import pytest

from idemcore import MemoryStore, StoreFull
from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record
from idemcore.testing.clock import FakeClock
from tests.interrupts import Interrupt, Interrupts, Steps
from tests.stores.shelf_books import check_books

BOOKS = ("/stores/shelf.py", "/stores/entry.py", "/stores/orders.py")
ANSWER = Answer("returned", b"", b"x" * 100)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in weakrefs' callbacks
def test_interrupts_at_random_moments_leave_the_books_whole() -> None:
    """Thousands of verbs, many broken off: later ones work, nothing is counted wrong, nothing is stuck."""
    random, clock = Random(11), FakeClock()
    store = MemoryStore(clock=clock, max_bytes=200_000)
    broken = 0
    with Interrupts() as interrupts:
        for number in range(3000):
            claim = made(number)
            try:
                try:
                    interrupts.arm(random.uniform(1e-6, 50e-6))
                    store.reserve(claim)
                    store.renew(claim)
                    if number % 3:
                        store.complete(claim, ANSWER)
                    else:
                        store.release(claim, "deleted")
                finally:
                    interrupts.disarm()
            except Interrupt:
                broken += 1
            except StoreFull:  # where few are broken off, facts fill it: more than 300 of them live at a time
                pass
            if number % 50 == 0:
                clock.advance(400)
    assert broken > 100
    store.sweep(0)  # which puts the books right, where the last verb was broken off
    check_books(store)
    clock.advance(10_000)
    for number in range(10_000, 10_050):
        claim = made(number)
        assert store.reserve(claim) is None
        store.complete(claim, ANSWER)
        record = store.get(claim.identity)
        assert isinstance(record, Record)
        assert record.answer == ANSWER
    clock.advance(100_000)
    while store.sweep(100).removed:
        pass
    assert len(store) == 0
    assert store._shelf.used_bytes == 0
    assert store._shelf._answer_bytes == 0
    assert not store._shelf._lines


def made(number: int) -> Claim:
    identity = Identity("t", "o", f"k{number}")
    token = number.to_bytes(16, "big")
    return Claim(identity, "v1.exact:1", token, 1, 30.0, 600.0, 3600.0 + number % 3, hold=False)


def a_day(store: MemoryStore, clock: FakeClock, acknowledged: list[Claim]) -> None:
    """Every verb that writes, with too little room for two answers, and records that die."""
    for number in range(3):
        store.reserve(made(number))
        store.complete(made(number), ANSWER._replace(body=b"x" * 600))
        acknowledged.append(made(number))
    held, given_up, deleted = (made(number)._replace(hold=number == 3) for number in range(3, 6))
    for claim in (held, given_up, deleted):
        store.reserve(claim)
    store.renew(held)
    store.release(held, "unknown")
    acknowledged.clear()
    clock.advance(5_000)
    store.sweep(10)
    store.resolve(held.identity, held.token, ANSWER, 60.0)
    store.reserve(given_up)
    store.release(given_up, "released")
    store.take_over(given_up.token, given_up._replace(token=b"t" * 16))
    store.reserve(deleted)
    store.release(deleted, "deleted")
    clock.advance(5_000)
    store.reserve(made(6))
    acknowledged.append(made(6))


def test_an_interrupt_at_any_step_leaves_the_books_whole() -> None:
    """Each line that changes the books in turn: what was acknowledged stays, all is linked and counted once."""
    for nth in range(1, 5_000):
        clock, acknowledged = FakeClock(), list[Claim]()
        store = MemoryStore(clock=clock, max_bytes=4_000)
        with Steps(nth, BOOKS) as steps:
            try:
                a_day(store, clock, acknowledged)
            except Interrupt:
                pass
        store.sweep(0)
        check_books(store)
        for claim in acknowledged:
            assert store.get(claim.identity) is not None
        if not steps.struck:
            break
    assert nth > 200
