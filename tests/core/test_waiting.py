"""Waiting for a run in progress: for so long, so many at a time, and never for oneself."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, cast

import pytest

from idemcore import Attempt, Engine, MemoryStore, Policy, Replay
from idemcore.errors import InProgress
from idemcore.testing.clock import FakeClock
from tests.core.engine_fixtures import ELEVEN_EUROS, TEN_EUROS

PATIENT = Policy(wait=timedelta(seconds=10))


class Waiting:
    """An engine whose sleeper tells a test that somebody waits."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.slept = 0.0
        self.idem = Engine(
            MemoryStore(), policy=PATIENT, observers=(), monotonic=self.clock, sleep=self.sleep, **options
        )
        self.idem.keeper._rouse = lambda: None  # type: ignore[method-assign]  # its clock is not the real one
        self.while_waiting = lambda: None

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.clock.advance(seconds)
        self.while_waiting()

    def begin(self, fingerprint: str = TEN_EUROS, **more: Any) -> Attempt | Replay:
        return self.idem.begin(scope="t", operation="charge", key="k", fingerprint=fingerprint, **more)


def test_who_waits_gets_the_answer() -> None:
    """A retry that comes while the first one runs is answered by it."""
    bench = Waiting()
    first = bench.begin()
    assert isinstance(first, Attempt)

    def finish() -> None:
        if bench.slept > 2 and not first.settled:
            first.complete(b"done")

    bench.while_waiting = finish
    again = bench.begin()
    assert isinstance(again, Replay)
    assert again.outcome.body == b"done"
    assert bench.slept < 3


def test_who_has_waited_long_enough_is_told() -> None:
    """The wait ends, and nothing ran."""
    bench = Waiting()
    first = bench.begin()
    with pytest.raises(InProgress):
        bench.begin()
    assert bench.slept == pytest.approx(10)
    with pytest.raises(InProgress) as refused:
        bench.begin(policy=Policy())
    assert not refused.value.for_itself
    assert bench.slept == pytest.approx(10)
    assert isinstance(first, Attempt)


def test_places_are_bounded_and_given_back() -> None:
    """RAC-01: whoever finds no place is refused at once, so an operation does not take every thread."""
    bench = Waiting(max_waiters=1)
    first = bench.begin()
    waited: list[str] = []

    def second_waiter() -> None:
        bench.while_waiting = lambda: None
        slept = bench.slept
        with pytest.raises(InProgress):
            bench.begin()
        waited.append("at once" if bench.slept == slept else "in line")

    for _ in range(3):
        bench.while_waiting = second_waiter
        with pytest.raises(InProgress):
            bench.begin()
    assert waited == ["at once"] * 3
    assert bench.slept == pytest.approx(30)
    assert isinstance(first, Attempt)


def test_a_run_does_not_wait_for_itself() -> None:
    """Whoever calls the same operation from inside of it is refused at once; another one may be waited for."""
    bench = Waiting()
    first = bench.begin()
    assert isinstance(first, Attempt)
    with first:
        for policy in (PATIENT, Policy()):
            with pytest.raises(InProgress) as refused:
                bench.begin(policy=policy)
            assert refused.value.for_itself
        assert bench.slept == 0
        first.complete(b"")


def test_content_may_be_part_of_the_name() -> None:
    """Under key+content the same key with a different request is another operation, chosen beforehand."""
    idem = Engine("memory://", policy=Policy(identity="key+content"), observers=())
    for fingerprint in (TEN_EUROS, ELEVEN_EUROS):
        with idem.begin(scope="t", operation="o", key="k", fingerprint=fingerprint) as attempt:  # type: ignore[union-attr]
            attempt.complete(fingerprint.encode())
    for fingerprint in (TEN_EUROS, ELEVEN_EUROS):
        begun = idem.begin(scope="t", operation="o", key="k", fingerprint=fingerprint)
        assert isinstance(begun, Replay)
        assert begun.outcome.body == fingerprint.encode()


def test_content_in_the_name_keeps_threads_apart() -> None:
    """Twenty at once with two contents run twice, once for each."""
    idem = Engine("memory://", policy=Policy(identity="key+content"), observers=())
    runs: list[str] = []
    barrier = threading.Barrier(20)

    def call(fingerprint: str) -> None:
        barrier.wait()
        try:
            begun = idem.begin(scope="t", operation="o", key="k", fingerprint=fingerprint)
        except InProgress:
            return
        if isinstance(begun, Attempt):
            runs.append(fingerprint)
            begun.complete(b"")

    threads = [threading.Thread(target=call, args=[(TEN_EUROS, ELEVEN_EUROS)[n % 2]]) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(runs) == [TEN_EUROS, ELEVEN_EUROS]


def test_nobody_waits_for_a_run_around_ones_own() -> None:
    """A run that begins another, which begins the first one's operation again, is refused at once."""
    bench = Waiting()
    with cast("Attempt", bench.begin()) as outer:
        inner = bench.idem.begin(scope="t", operation="notify", key="k", fingerprint=TEN_EUROS)
        with cast("Attempt", inner):
            assert cast("Attempt", inner).outer is outer
            with pytest.raises(InProgress):
                bench.begin()
            cast("Attempt", inner).complete(b"")
        outer.complete(b"")
    assert bench.slept == 0
