"""Memory: room, expiry without being asked, bytes that nobody can change, forks, threads."""

from __future__ import annotations

import logging
import multiprocessing
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from idemcore.engine import Engine
from idemcore.errors import ConfigurationError, StoreFull
from idemcore.events import Evicted
from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Stored, Tombstone
from idemcore.stores.memory import MemoryStore
from tests.stores.shelf_books import sizes

SMALL = Answer("http", b"{}", b"done")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def claim(number: int, *, retention: float = 1.0, max_hold: float = 1.0, hold: bool = False) -> Claim:
    identity = Identity("tenant", "op", f"key-{number}")
    return Claim(identity, "v1.x:1", number.to_bytes(16, "big"), 1, 1.0, max_hold, retention, hold)


def fill(store: MemoryStore, count: int, body: bytes = b"done", first: int = 0, **options: Any) -> list[Claim]:
    claims = [claim(number, **options) for number in range(first, first + count)]
    for made in claims:
        store.reserve(made)
        store.complete(made, Answer("http", b"", body))
    return claims


def test_dead_records_leave_memory_while_others_come() -> None:
    """MEM-01: 10,000 finished keys past their time are gone after a few hundred writes, unasked."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    fill(store, 10_000)
    assert len(store) == 10_000
    clock.now += 3
    for number in range(10_000, 10_400):
        store.reserve(claim(number))
    assert sizes(store) == [400, 400, 0]


def test_one_write_removes_a_bounded_number_of_dead_records() -> None:
    """MEM-01: no single request pays for the whole backlog."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    fill(store, 10_000)
    clock.now += 3
    store.reserve(claim(10_000))
    assert 10_000 - 100 < len(store) < 10_001


def test_no_structure_keeps_an_entry_for_a_dead_key() -> None:
    """MEM-02: after expiry, deletion and takeover every dict is empty, and so is the count of bytes."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    fill(store, 500)
    for number in range(500, 1_000):
        store.reserve(claim(number, retention=7.0))
        store.release(claim(number, retention=7.0), "deleted")
    for number in range(1_000, 1_500):
        store.reserve(claim(number))
    clock.now += 3
    assert store.sweep(10_000)[:2] == (500, 500)
    assert sizes(store) == [0, 0, 0]
    assert store._shelf.used_bytes == 0
    assert not store._shelf._lines
    assert not store._shelf._turns


def test_many_different_retentions_all_expire() -> None:
    """MEM-01: a retention of its own for every key starves none of them."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    for number in range(1_000):
        store.reserve(claim(number, retention=1 + number / 1_000))
    clock.now += 10
    for number in range(1_000, 2_500):
        store.reserve(claim(number, retention=3.0))
    assert len(store) == 1_500


def test_what_waits_for_an_operator_does_not_block_the_others() -> None:
    """A claim on hold at the head of its line stays; the dead records behind it go."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    held = claim(0, hold=True)
    store.reserve(held)
    fill(store, 100, first=1)
    clock.now += 3
    store.reserve(claim(1_000))
    store.sweep(1_000)
    assert [found.identity.key for found in store.find(limit=10)] == ["key-0", "key-1000"]
    assert store.resolve(held.identity, held.token, "released", 5.0)
    clock.now += 6
    store.sweep(1_000)
    assert len(store) == 0


def test_the_oldest_answers_go_first_and_leave_the_fact() -> None:
    """Under pressure a body is given up, with a word to the listener; its operation never runs again."""
    store = MemoryStore(max_bytes=40_000)
    heard: list[str] = []
    store.add_listener(lambda identity: heard.append(identity.key))
    claims = fill(store, 10, b"x" * 5_000, retention=1e6)
    evicted = [made for made in claims if made.identity.key in heard]
    assert evicted == claims[: len(evicted)]
    assert 0 < len(evicted) < 10
    for made in claims:
        record = store.reserve(made._replace(token=b"another"))
        assert isinstance(record, Record)
        if made in evicted:
            assert (record.state, record.reason, record.answer) == (State.TOMBSTONE, "evicted", None)
        else:
            assert record.state is State.COMPLETED
    assert store._shelf.used_bytes <= 40_000


def test_a_repeated_complete_after_eviction_is_still_stored() -> None:
    """RAC-04: the acknowledgement got lost and the answer was given up since; the outcome was recorded."""
    store = MemoryStore(max_bytes=10_000)
    first = claim(1)
    store.reserve(first)
    store.complete(first, Answer("http", b"", b"x" * 6_000))
    store.reserve(claim(2))
    store.complete(claim(2), Answer("http", b"", b"y" * 6_000))
    assert store.complete(first, Answer("http", b"", b"x" * 6_000)) == Stored()


def test_an_answer_that_can_never_fit_costs_no_other_its_place() -> None:
    """One body larger than the whole store becomes a tombstone; what was kept stays kept."""
    store = MemoryStore(max_bytes=10_000)
    heard: list[Identity] = []
    store.add_listener(heard.append)
    fill(store, 1, b"kept", retention=1e6)
    large = claim(7)
    store.reserve(large)
    assert store.complete(large, Answer("http", b"", b"x" * 20_000)) == Stored()
    assert heard == [large.identity]
    record = store.get(large.identity)
    assert record is not None
    assert (record.state, record.reason) == (State.TOMBSTONE, "evicted")
    kept = store.get(claim(0).identity)
    assert kept is not None
    assert kept.state is State.COMPLETED


def test_a_store_full_of_facts_refuses_new_claims() -> None:
    """Neither a claim nor a fact is dropped before its time; room comes back when they die."""
    clock = Clock()
    store = MemoryStore(max_bytes=20_000, clock=clock)
    while store._shelf.used_bytes < 19_000:
        store.reserve(claim(len(store)))
    store.reserve(claim(len(store)))
    granted = len(store)
    with pytest.raises(StoreFull) as refused:
        store.reserve(claim(granted))
    assert claim(granted).identity.key not in str(refused.value)
    assert [store.complete(claim(number), Tombstone("no")) for number in range(granted)] == [Stored()] * granted
    clock.now += 3
    assert store.reserve(claim(1_000)) is None


def test_claims_are_never_evicted() -> None:
    """However many answers pass through, a running claim stays: nobody is granted it twice."""
    store = MemoryStore(max_bytes=20_000)
    victim = claim(9_999, max_hold=1e6)
    store.reserve(victim)
    for number in range(100):
        made = claim(number, retention=1e6)
        store.reserve(made)
        store.complete(made, Answer("http", b"", b"x" * 3_000))
        store._shelf.remove(store._shelf.entries[made.identity])
    record = store.reserve(victim._replace(token=b"other"))
    assert isinstance(record, Record)
    assert record.token == victim.token


def test_work_that_is_done_is_recorded_even_in_a_full_store() -> None:
    """A claim that was swept meanwhile still leaves its outcome, and so protects its key."""
    store = MemoryStore(max_bytes=1_500)
    store.reserve(claim(1))
    store.reserve(claim(2))
    with pytest.raises(StoreFull):
        store.reserve(claim(3))
    assert store.complete(claim(3), SMALL) == Stored()
    assert store.get(claim(3).identity) is not None


def test_a_caller_cannot_change_what_is_kept() -> None:
    """FUN-01: bytes that can be changed are copied on the way in; what comes out is immutable."""
    store = MemoryStore()
    body = bytearray(b"paid")
    store.reserve(claim(1))
    store.complete(claim(1), Answer("http", bytearray(b"{}"), body))  # type: ignore[arg-type]
    body[:] = b"void"
    record = store.get(claim(1).identity)
    assert record is not None
    assert record.answer == Answer("http", b"{}", b"paid")
    assert type(record.answer.body) is bytes


def test_a_listener_that_raises_is_logged_and_not_in_the_way(caplog: pytest.LogCaptureFixture) -> None:
    """An observer's failure costs nobody an outcome."""
    store = MemoryStore(max_bytes=5_000)

    def listener(identity: Identity) -> None:
        raise RuntimeError("observer")

    heard: list[Identity] = []
    store.add_listener(listener)
    store.add_listener(heard.append)
    store.reserve(claim(1))
    assert store.complete(claim(1), Answer("http", b"", b"x" * 9_000)) == Stored()
    assert "listener" in caplog.text
    assert "key-1" not in caplog.text
    assert heard == [claim(1).identity]  # by the other listener


def test_a_listener_may_use_the_store() -> None:
    """MEM-04: it is called outside the lock."""
    store = MemoryStore(max_bytes=5_000)
    seen: list[object] = []
    store.add_listener(lambda identity: seen.append(store.get(identity)))
    store.reserve(claim(1))
    store.complete(claim(1), Answer("http", b"", b"x" * 9_000))
    assert len(seen) == 1


def test_no_lock_is_held_between_reserve_and_complete() -> None:
    """MEM-04: while one key's work goes on, other keys and other threads are served."""
    store = MemoryStore()
    store.reserve(claim(0))
    with_others = threading.Thread(target=fill, args=(store, 50, b"done", 1))
    with_others.start()
    with_others.join(timeout=60)
    assert not with_others.is_alive()
    assert store.complete(claim(0), SMALL) == Stored()


def test_two_users_of_one_store_share_it_and_two_stores_share_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """MEM-03: state is the store's, nobody else's; the check at start says that memory is per process."""
    one, other = MemoryStore(), MemoryStore()
    one.reserve(claim(1))
    assert one.reserve(claim(1)) is not None
    assert other.reserve(claim(1)) is None
    with caplog.at_level(logging.WARNING):
        one.check()
    assert "per process" in caplog.text


def test_a_size_that_holds_nothing_is_refused() -> None:
    """A store that could keep no record is a mistake in the configuration."""
    with pytest.raises(ConfigurationError):
        MemoryStore(max_bytes=0)


def test_repr_shows_no_record() -> None:
    """SEC-01: a store in a traceback gives nothing away."""
    store = MemoryStore()
    fill(store, 3, b"secret")
    assert repr(store) == "MemoryStore(<3 records>)"


def _in_child(store: MemoryStore, results: Any) -> None:
    record = store.get(claim(1).identity)
    running = store.reserve(claim(2)._replace(token=b"child"))
    fresh = store.reserve(claim(3))
    results.put((record is not None and record.answer, running is not None, fresh is None))


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")  # forking is what is tested
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_is_not_stuck_and_keeps_what_was_recorded() -> None:
    """SQL-04, for memory: a lock that a thread held at the fork is free in the child, facts are still facts,
    and a claim that the parent may be running is refused there.
    """
    store = MemoryStore()
    store.reserve(claim(1, retention=1e6))
    store.complete(claim(1, retention=1e6), SMALL)
    store.reserve(claim(2)._replace(lease=1e6))
    stop = threading.Event()

    def keep_the_lock_busy() -> None:
        number = 100
        while not stop.is_set():
            store.reserve(claim(number))
            number += 1

    busy = threading.Thread(target=keep_the_lock_busy)
    busy.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            results = context.SimpleQueue()
            child = context.Process(target=_in_child, args=(store, results))
            child.start()
            child.join(timeout=60)
            assert child.exitcode == 0
            assert results.get() == (SMALL, True, True)
    finally:
        stop.set()
        busy.join()
    assert store.complete(claim(2)._replace(lease=1e6), SMALL) == Stored()


def lines_run(act: Callable[[], object]) -> int:
    """How many lines of Python one call runs: what it costs, whatever the machine."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines


def test_a_claim_costs_the_same_with_any_number_of_records() -> None:
    """MEM-02: a new claim and a replay run as many lines with 20,000 records as with 20."""
    costs = []
    for count in (20, 20_000):
        store = MemoryStore(clock=Clock())
        claims = fill(store, count, retention=1e6)
        new = claim(count + 1, retention=1e6)
        costs.append((lines_run(lambda: store.reserve(new)), lines_run(lambda: store.reserve(claims[7]))))  # noqa: B023
    assert costs[0] == costs[1]
    assert min(costs[0]) > 5


def test_a_retention_that_nobody_uses_any_more_is_not_in_the_way() -> None:
    """MEM-02: the only record of its kind was forgotten before its time; others expire as ever."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    fill(store, 10, first=2)
    fill(store, 10, first=20, retention=3.0)
    store.reserve(claim(1, retention=50.0))
    store.release(claim(1, retention=50.0), "deleted")
    clock.now += 3
    store.reserve(claim(100))
    assert len(store) == 11


def test_two_engines_on_one_store_both_hear_of_an_eviction() -> None:
    """Whoever listens already is not replaced by an engine, nor one engine by the next."""
    store = MemoryStore(max_bytes=5_000)
    heard: list[object] = []
    store.add_listener(heard.append)
    for _ in range(2):
        Engine(store, observers=[heard.append])
    store.reserve(claim(1))
    store.complete(claim(1), Answer("http", b"", b"x" * 9_000))
    assert heard[0] == claim(1).identity
    assert [type(event) for event in heard[1:]] == [Evicted, Evicted]
