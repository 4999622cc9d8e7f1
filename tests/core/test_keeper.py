"""Claims that are kept alive and recordings that are got through, without a thread and without waiting."""

from __future__ import annotations

import gc
import os
import threading
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from idemcore import (
    AnswerTooLarge,
    Attempt,
    ConfigurationError,
    Engine,
    InProgress,
    LeaseLost,
    MemoryStore,
    NotReplayable,
    Policy,
    StoreUnavailable,
    events,
)
from idemcore.identity import identify
from idemcore.record import Answer, Claim, Record, State
from idemcore.recordings import MAX_PENDING
from idemcore.testing.clock import FakeClock
from tests.core.engine_fixtures import TEN_EUROS, Bench, Faulty, make_bench

POLICY = Policy(lease=timedelta(seconds=6), max_hold=timedelta(seconds=60))


@pytest.fixture
def store() -> Faulty:
    return Faulty()


@pytest.fixture
def bench(store: Faulty) -> Bench:
    return make_bench(store, POLICY)


def pass_time(bench: Bench, seconds: float) -> None:
    """Time goes by in quarter seconds, the keeper doing in each what is due."""
    for _ in range(round(seconds * 4)):
        bench.clock.advance(0.25)
        bench.idem.keeper.step()


def renewals(store: Faulty) -> int:
    return store.calls.count("renew")


def test_the_first_renewal_comes_at_a_third_of_the_lease(bench: Bench, store: Faulty) -> None:
    """Not before 2 of 6 seconds; then again a third after each success."""
    attempt = bench.attempt()
    pass_time(bench, 1.75)
    assert renewals(store) == 0
    pass_time(bench, 0.25)
    assert renewals(store) == 1
    pass_time(bench, 2)
    assert renewals(store) == 2
    attempt.complete(b"")
    pass_time(bench, 10)
    assert renewals(store) == 2


def test_a_slow_run_keeps_others_out_for_many_leases(bench: Bench) -> None:
    """LEA-04: a handler of eight leases is refused to others throughout, and then records its answer."""
    attempt = bench.attempt()
    for _ in range(8):
        pass_time(bench, 6)
        with pytest.raises(InProgress):
            bench.begin()
    attempt.complete(b"slow")
    assert bench.replay().outcome.body == b"slow"


def test_a_failed_renewal_is_told_and_tried_again_each_sixth(bench: Bench, store: Faulty) -> None:
    """LEA-05: one transient error costs nothing but an event."""
    bench_attempt = bench.attempt()
    store.break_next("renew", times=2)
    pass_time(bench, 4)
    assert renewals(store) == 3  # at 2 s, 3 s and 4 s
    assert len(bench.seen(events.RenewalFailed)) == 2
    pass_time(bench, 20)
    with pytest.raises(InProgress):
        bench.begin()
    assert bench.seen(events.LeaseEnded) == []
    bench_attempt.complete(b"")


@pytest.mark.parametrize(("failures", "overtaken"), [(3, False), (4, True)], ids=["half a lease", "longer"])
def test_an_outage_of_half_a_lease_costs_no_claim(
    bench: Bench, store: Faulty, failures: int, overtaken: bool
) -> None:
    """LEA-05: begun just before a renewal it has room for three failures; after a fourth the lease ends."""
    attempt = bench.attempt()
    store.break_next("renew", times=failures)  # at 2 s, 3 s, 4 s and 5 s of 6 s
    pass_time(bench, 5.75)
    bench.clock.advance(0.25)  # a retry that comes before the keeper's next try
    if overtaken:
        assert bench.attempt().number == 2
    else:
        with pytest.raises(InProgress):
            bench.begin()
        attempt.complete(b"")


def test_renewals_that_keep_failing_end_in_an_event_and_a_takeover(bench: Bench, store: Faulty) -> None:
    """LEA-05: the owner is told once that its lease ended; another may run; its own finish is fenced."""
    attempt = bench.attempt()
    store.break_next("renew", times=100)
    pass_time(bench, 9)
    ended = bench.seen(events.LeaseEnded)
    assert ended == [events.LeaseEnded(attempt.identity, 1, "not_renewed")]
    second = bench.attempt()
    assert second.number == 2
    attempt.complete(b"late")
    second.complete(b"second")
    assert bench.replay().outcome.body == b"second"


class Distant(Faulty):
    """A store that takes 20 ms for a renewal or a recording, and notes when each key was renewed."""

    clock: FakeClock

    def __init__(self) -> None:
        super().__init__()
        self.renewed_at: dict[str, list[float]] = {}

    def renew(self, claim: Claim) -> Any:
        self.clock.advance(0.02)
        self.renewed_at.setdefault(claim.identity.key, []).append(self.clock())
        return self.inner.renew(claim)

    def complete(self, *args: Any) -> Any:
        self.clock.advance(0.02)
        return self.__getattr__("complete")(*args)


@pytest.fixture
def distant() -> tuple[Bench, Distant]:
    store = Distant()
    bench = make_bench(store, POLICY)
    store.clock = bench.clock
    return bench, store


def longest_pause(began: float, store: Distant, key: str) -> float:
    """Seconds between two renewals."""
    times = [began, *store.renewed_at[key]]
    return max(later - sooner for sooner, later in pairwise(times))


def work(bench: Bench, seconds: float) -> None:
    """The keeper does what is due, and rests until the next duty, as its thread does."""
    ends = bench.clock() + seconds
    while bench.clock() < ends:
        rest = min(bench.idem.keeper.step(), ends) - bench.clock()
        bench.clock.sleep(rest)
    bench.idem.keeper.step()


def test_a_short_lease_does_not_wait_for_all_that_are_due(distant: tuple[Bench, Distant]) -> None:
    """300 renewals take 6 s; the claim that comes due meanwhile has a lease of 3."""
    bench, store = distant
    long, short = Policy(lease=timedelta(seconds=60)), Policy(lease=timedelta(seconds=3))
    held = [bench.attempt(key=str(number), policy=long) for number in range(300)]
    bench.clock.advance(20)
    began = bench.clock()
    held.append(bench.attempt(key="short", policy=short))
    work(bench, 30)
    assert longest_pause(began, store, "short") < 3
    assert bench.seen(events.LeaseEnded) + bench.seen(events.RenewalFailed) == []


def test_claims_that_have_to_wait_too_long_for_their_renewal_are_told(distant: tuple[Bench, Distant]) -> None:
    """300 claims of 3 s, of which the store renews half in time: whatever can be taken over was told before."""
    bench, _ = distant
    short = Policy(lease=timedelta(seconds=3))
    held = [bench.attempt(key=str(number), policy=short) for number in range(300)]
    work(bench, 8)
    told = {event.identity for event in bench.seen(events.LeaseEnded) if isinstance(event, events.LeaseEnded)}
    taken = set()
    for attempt in held:
        try:
            taken.add(bench.attempt(key=attempt.identity.key, policy=short).identity)
        except InProgress:
            pass
    assert taken
    assert taken <= told


@pytest.mark.parametrize("number", [60, 140], ids=["more than a third of the lease", "nearly the lease"])
def test_all_claims_stand_again_after_a_pause(distant: tuple[Bench, Distant], number: int) -> None:
    """However much of the lease a round of renewals takes: none waits for ever behind those that stand."""
    bench, _ = distant
    short = Policy(lease=timedelta(seconds=3))
    held = [bench.attempt(key=str(key), policy=short) for key in range(number)]
    bench.clock.advance(60)
    work(bench, 15)
    for attempt in held:
        with pytest.raises(InProgress):
            bench.begin(key=attempt.identity.key, policy=short)


def test_a_renewal_that_comes_too_late_and_wins_is_told(bench: Bench) -> None:
    """The process was stopped for longer than a lease, and nobody has come: a warning, and the claim stands."""
    attempt = bench.attempt()
    bench.clock.advance(7)
    pass_time(bench, 3)
    assert bench.seen(events.RenewalFailed) == [events.RenewalFailed(attempt.identity, 1, "sent_late")]
    assert bench.seen(events.LeaseEnded) == []
    with pytest.raises(InProgress):
        bench.begin()


def test_recordings_that_take_long_keep_no_renewal_waiting(distant: tuple[Bench, Distant]) -> None:
    """A store that is back and slow: 300 recordings take 6 s, the claim beside them has a lease of 3."""
    bench, store = distant
    store.break_next("complete", times=300)
    for number in range(300):
        bench.attempt(key=str(number)).complete(b"done")
    began = bench.clock()
    held = bench.attempt(key="held", policy=Policy(lease=timedelta(seconds=3)))
    work(bench, 10)
    assert len(bench.seen(events.RecordingRecovered)) == 300
    assert longest_pause(began, store, "held") < 3
    held.complete(b"")


def test_no_renewal_passes_max_hold(bench: Bench, store: Faulty) -> None:
    """At 60 s the claim ends although the run goes on, an event says so, and a retry takes over."""
    attempt = bench.attempt()
    pass_time(bench, 59)
    with pytest.raises(InProgress):
        bench.begin()
    pass_time(bench, 1.5)
    assert bench.seen(events.LeaseEnded) == [events.LeaseEnded(attempt.identity, 1, "max_hold")]
    assert bench.attempt().number == 2
    with pytest.raises(LeaseLost):
        attempt.renew()


def test_an_attempt_that_nobody_holds_renews_nothing(bench: Bench, store: Faulty) -> None:
    """A leaked attempt is collected, its lease ends by itself, and the key works again."""
    attempt: Attempt | None = bench.attempt()
    del attempt
    gc.collect()
    pass_time(bench, 7)
    assert renewals(store) == 0
    assert bench.attempt().number == 2


def test_an_explicit_renewal_moves_the_next_one(bench: Bench, store: Faulty) -> None:
    """attempt.renew() counts: the keeper waits a third of the lease from there."""
    attempt = bench.attempt()
    pass_time(bench, 1.5)
    attempt.renew()
    pass_time(bench, 1.75)
    assert renewals(store) == 1
    pass_time(bench, 0.25)
    assert renewals(store) == 2
    attempt.complete(b"")


def test_a_takeover_behind_the_owners_back_is_told_once(bench: Bench, store: Faulty) -> None:
    """The owner slept through its lease (no step ran); the keeper notices when it comes to renew."""
    attempt = bench.attempt()
    bench.clock.advance(7)
    winner = bench.attempt()
    pass_time(bench, 3)
    assert bench.seen(events.LeaseEnded) == [events.LeaseEnded(attempt.identity, 1, "lost")]
    winner.complete(b"")


def test_a_recording_is_retried_with_growing_pauses_and_its_claim_renewed(bench: Bench, store: Faulty) -> None:
    """OUT-04: the store is away for 20 s: others wait, nothing runs twice, then the answer is there."""
    store.break_next("complete", times=8)
    bench.attempt().complete(b"receipt")
    pass_time(bench, 5)
    tried = store.calls.count("complete")
    assert 4 <= tried <= 8
    with pytest.raises(InProgress):
        bench.begin()
    pass_time(bench, 20)
    assert bench.replay().outcome.body == b"receipt"
    recovered = bench.seen(events.RecordingRecovered)
    assert len(recovered) == 1
    assert isinstance(recovered[0], events.RecordingRecovered)
    assert recovered[0].tries == 9


def test_a_lost_acknowledgement_of_a_recording_is_no_double(bench: Bench, store: Faulty) -> None:
    """The first try was written and its answer got lost; repeating it finds its own work done."""
    store.break_next("complete", after=True)
    bench.attempt().complete(b"receipt")
    pass_time(bench, 1)
    assert bench.replay().outcome.body == b"receipt"
    assert len(bench.seen(events.RecordingRecovered)) == 1


def test_a_lost_acknowledgement_of_a_release_is_no_late_finish(bench: Bench, store: Faulty) -> None:
    """The key was freed and claimed again before the release is tried again: no alarm for a double effect."""
    store.break_next("release", after=True)
    bench.attempt().release()
    again = bench.attempt()
    pass_time(bench, 1)
    assert bench.seen(events.LateFinish) == []
    assert [event.identity for event in bench.seen(events.Settled)] == [again.identity]
    again.complete(b"receipt")
    assert bench.replay().outcome.body == b"receipt"


def test_a_release_that_failed_until_another_run_took_over_is_late(bench: Bench, store: Faulty) -> None:
    """After its lease nobody can tell a release that got through from one that did not: look for a double."""
    store.break_next("release", times=1000)
    bench.attempt().release()
    bench.clock.advance(7)
    bench.attempt()
    store.fail.clear()
    pass_time(bench, 1)
    assert len(bench.seen(events.LateFinish)) == 1


def test_a_recording_that_never_gets_through_is_given_up_loudly(bench: Bench, store: Faulty) -> None:
    """After max_hold the work is done and unrecorded: the one event that must wake somebody."""
    store.break_next("complete", times=10_000)
    store.break_next("renew", times=10_000)
    attempt = bench.attempt()
    attempt.complete(b"receipt")
    pass_time(bench, 75)
    lost = bench.seen(events.RecordingLost)
    assert [event.identity for event in lost] == [attempt.identity]
    assert lost[0].level >= 50
    before = store.calls.count("complete")
    pass_time(bench, 30)
    assert store.calls.count("complete") == before


def test_a_late_recording_that_was_overtaken_is_fenced(bench: Bench, store: Faulty) -> None:
    """The claim could not be renewed either, another run finished: its record stands."""
    store.break_next("complete", times=5)
    store.break_next("renew", times=5)
    bench.attempt().complete(b"late")
    bench.clock.advance(7)
    store.fail.clear()
    another_process = Engine(store, policy=POLICY, observers=[], monotonic=bench.clock)
    another_process.keeper._rouse = lambda: True  # type: ignore[method-assign]
    winner = another_process.begin(scope="t", operation="charge", key="k", fingerprint=TEN_EUROS)
    assert isinstance(winner, Attempt)
    winner.complete(b"winner")
    pass_time(bench, 20)
    assert bench.replay().outcome.body == b"winner"
    assert len(bench.seen(events.LateFinish)) == 1


def test_pending_recordings_are_bounded(bench: Bench, store: Faulty) -> None:
    """A store that is away for long cannot fill the memory: the oldest is given up, and said to be."""
    store.break_next("complete", times=10_000)
    for number in range(MAX_PENDING + 3):
        bench.attempt(key=f"k{number}").complete(b"")
    assert len(bench.seen(events.RecordingLost)) == 3


def test_closing_the_engine_tries_what_is_pending_once_more(bench: Bench, store: Faulty) -> None:
    """A process that ends in good order leaves its recordings behind."""
    store.break_next("complete")
    bench.attempt().complete(b"receipt")
    store_left_behind = bench.idem.store
    bench.idem.close()
    record = store_left_behind.get(identify("t", "charge", "k"))
    assert isinstance(record, Record)
    assert record.answer is not None
    assert record.answer.body == b"receipt"


def test_a_tombstone_that_fails_is_retried_too(bench: Bench, store: Faulty) -> None:
    """That the work is done and its answer is not kept is a recording like any other."""
    store.break_next("complete")
    bench.attempt().tombstone("too_large")
    pass_time(bench, 1)
    with pytest.raises(NotReplayable, match="too_large"):
        bench.begin()


def test_the_thread_starts_when_needed_and_renews_by_the_real_clock() -> None:
    """One thread an engine, a daemon, none before the first claim; it ends with close()."""
    renewed = threading.Event()
    store = MemoryStore()
    real = store.renew

    def renew(claim: object) -> float | None:
        renewed.set()
        return real(claim)  # type: ignore[arg-type]

    store.renew = renew  # type: ignore[method-assign]
    before = keepers()
    idem = Engine(store, policy=Policy(lease=timedelta(seconds=0.05), max_hold=timedelta(seconds=60)))
    assert keepers() == before
    begun = idem.begin(scope="t", operation="o", key="k", fingerprint=TEN_EUROS)
    assert isinstance(begun, Attempt)
    second = idem.begin(scope="t", operation="o", key="k2", fingerprint=TEN_EUROS)
    assert isinstance(second, Attempt)
    assert len(keepers()) == len(before) + 1
    assert all(thread.daemon for thread in keepers())
    assert renewed.wait(30)
    idem.close()
    assert keepers() == before
    begun.complete(b"")
    second.complete(b"")


def test_a_shorter_lease_wakes_a_resting_thread() -> None:
    """The thread rests for a long lease; a claim with a short one is still renewed in time."""
    renewed = threading.Event()
    store = MemoryStore()
    real = store.renew

    def renew(claim: object) -> float | None:
        renewed.set()
        return real(claim)  # type: ignore[arg-type]

    store.renew = renew  # type: ignore[method-assign]
    idem = Engine(store)
    long = idem.begin(scope="t", operation="o", key="long", fingerprint=TEN_EUROS)
    short_policy = Policy(lease=timedelta(seconds=0.05))
    short = idem.begin(scope="t", operation="o", key="short", fingerprint=TEN_EUROS, policy=short_policy)
    assert isinstance(long, Attempt)
    assert isinstance(short, Attempt)
    assert renewed.wait(5), "the thread slept on until the long lease's first renewal"
    short.complete(b"")
    long.complete(b"")
    idem.close()


def test_an_engine_that_is_forgotten_takes_its_thread_along() -> None:
    """The thread holds its keeper only while it works."""
    before = keepers()
    idem = Engine("memory://", policy=Policy(lease=timedelta(seconds=0.03)))
    begun = idem.begin(scope="t", operation="o", key="k", fingerprint=TEN_EUROS)
    assert isinstance(begun, Attempt)
    (thread,) = keepers() - before
    del begun, idem
    gc.collect()
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_renews_nothing_of_its_parents(bench: Bench, store: Faulty) -> None:
    """The claim belongs to the parent; the child starts with nothing to keep and a thread of its own."""
    attempt = bench.attempt()
    child = os.fork()
    if child == 0:  # no assert here: the child answers by its exit status
        calls = renewals(store)
        pass_time(bench, 10)
        os._exit(0 if renewals(store) == calls else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    pass_time(bench, 10)
    assert renewals(store) > 0
    attempt.complete(b"")


def keepers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "idemcore-keeper"}


def test_a_thread_that_cannot_start_is_tried_again_at_the_next_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system was out of threads for a moment: the claim goes ahead with an event, the next one renews."""
    real = threading.Thread.start
    refused: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if thread.name == "idemcore-keeper" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    seen: list[events.Event] = []
    before = keepers()
    idem = Engine("memory://", observers=[seen.append])
    first = idem.begin(scope="t", operation="o", key="first", fingerprint=TEN_EUROS)
    assert isinstance(first, Attempt)
    assert [type(event) for event in seen] == [events.Started, events.RenewalFailed]
    assert keepers() == before
    second = idem.begin(scope="t", operation="o", key="second", fingerprint=TEN_EUROS)
    assert isinstance(second, Attempt)
    assert len(keepers()) == len(before) + 1
    first.complete(b"")
    second.complete(b"")
    idem.close()
    assert keepers() == before


def test_a_thread_that_breaks_before_its_start_was_noted_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come to its end while start() has not yet returned; a dead one would renew nothing for ever."""
    real = threading.Thread.start
    before = keepers()
    idem = Engine("memory://", observers=[])
    broken: list[threading.Thread] = []

    def round_() -> float:
        raise MemoryError

    def start(thread: threading.Thread) -> None:
        real(thread)
        if thread.name == "idemcore-keeper":
            broken.append(thread)
            thread.join(0.2)  # to its end, or to where it waits for whoever starts it

    monkeypatch.setattr(idem.keeper, "round", round_)
    monkeypatch.setattr(threading.Thread, "start", start)
    first = idem.begin(scope="t", operation="o", key="first", fingerprint=TEN_EUROS)
    broken[0].join(20)
    monkeypatch.undo()
    second = idem.begin(scope="t", operation="o", key="second", fingerprint=TEN_EUROS)
    assert len(keepers()) == len(before) + 1
    for begun in (first, second):
        assert isinstance(begun, Attempt)
        begun.complete(b"")
    idem.close()


def test_a_closed_engine_begins_nothing(bench: Bench, store: Faulty) -> None:
    """Nothing would renew its claims."""
    bench.idem.close()
    with pytest.raises(ConfigurationError, match="closed"):
        bench.begin()
    assert store.calls == []


def test_the_end_of_a_program_does_not_wait_for_each_recording(bench: Bench, store: Faulty) -> None:
    """A store that is away is asked for one answer and one fact; the rest is given up, nothing is renewed."""
    store.break_next("complete", times=1000)
    for number in range(5):
        bench.attempt(key=f"k{number}").complete(b"")
    store.calls.clear()
    bench.idem.close()
    assert store.calls == ["complete", "complete"]
    assert len(bench.seen(events.RecordingLost)) == 5


def test_an_error_of_the_store_keeps_the_answer_for_later(bench: Bench, store: Faulty) -> None:
    """A table that is missing for a moment, as in a migration, speaks of the store and not of the answer."""
    store.break_next("complete", times=3, error=ConfigurationError("the table is missing"))
    bench.attempt().complete(b"receipt")
    pass_time(bench, 5)
    assert bench.replay().outcome.body == b"receipt"


def test_an_answer_that_never_gets_through_leaves_the_fact_at_the_end(bench: Bench, store: Faulty) -> None:
    """A store that is away whenever it is given this answer: the fact alone is tried last, and stays."""
    real = store.inner.complete

    def complete(claim: object, outcome: object) -> object:
        if isinstance(outcome, Answer):
            raise StoreUnavailable("the connection was cut")
        return real(claim, outcome)

    store.inner.complete = complete
    bench.attempt().complete(b"too long a packet")
    pass_time(bench, 75)
    with pytest.raises(NotReplayable, match="not_recordable"):
        bench.begin()
    assert bench.seen(events.RecordingLost) == []


def test_a_late_outcome_is_kept_if_the_run_that_took_over_fails(bench: Bench) -> None:
    """LEA-03: A finished late while B was running; B raises: A's good answer stands and nothing runs again."""
    late = bench.attempt()
    bench.clock.advance(7)
    second = bench.attempt()
    assert late.complete(b"late") is None
    pass_time(bench, 1)
    with pytest.raises(InProgress):
        bench.begin()
    second.fail(ValueError("no"))
    pass_time(bench, 3)
    assert bench.replay().outcome.body == b"late"


def test_a_late_outcome_gives_way_to_the_run_that_took_over(bench: Bench, store: Faulty) -> None:
    """B finishes: its answer stands, and nobody goes on trying."""
    late = bench.attempt()
    bench.clock.advance(7)
    second = bench.attempt()
    late.complete(b"late")
    second.complete(b"second")
    pass_time(bench, 3)
    tried = store.calls.count("complete")
    pass_time(bench, 30)
    assert store.calls.count("complete") == tried
    assert bench.replay().outcome.body == b"second"


def test_a_renewal_that_meets_a_finished_attempt_is_no_lost_lease(bench: Bench, store: Faulty) -> None:
    """The attempt ended while its renewal was under way: nothing to report."""
    attempt = bench.attempt()
    real = store.inner.renew

    def renew(claim: object) -> object:
        attempt.complete(b"done")
        return real(claim)

    store.inner.renew = renew
    pass_time(bench, 3)
    assert bench.seen(events.LeaseEnded) == []
    assert bench.replay().outcome.body == b"done"


def test_an_outcome_with_another_run_in_its_way_stops_no_other_at_the_end(bench: Bench, store: Faulty) -> None:
    """The end of a program asks on for the rest: "taken over" is no "store away"."""
    late = bench.attempt(key="a")
    bench.clock.advance(7)
    bench.attempt(key="a")
    late.complete(b"late")
    store.break_next("complete")
    bench.attempt(key="b").complete(b"fine")
    behind = bench.idem.store
    bench.idem.close()
    record = behind.get(identify("t", "charge", "b"))
    assert isinstance(record, Record)
    assert record.state == "completed"
    assert bench.seen(events.RecordingLost) == []


def test_a_store_that_is_away_is_asked_once_a_round(bench: Bench, store: Faulty) -> None:
    """Each try takes the store's whole time limit, and live claims wait for their renewal meanwhile."""
    store.break_next("complete", times=1000)
    for number in range(20):
        bench.attempt(key=f"k{number}").complete(b"")
    store.calls.clear()
    bench.clock.advance(1)
    bench.idem.keeper.step()
    assert store.calls == ["complete", "renew"]


def test_a_retry_finds_what_waits_to_be_recorded_here_before_it_takes_over(bench: Bench, store: Faulty) -> None:
    """OUT-04: the store was away for longer than the lease; the retry comes before the keeper's next try."""
    store.break_next("complete")
    bench.attempt().complete(b"receipt")
    bench.clock.advance(7)
    assert bench.replay().outcome.body == b"receipt"


def test_an_answer_too_large_for_its_store_is_recorded_as_done_at_once(bench: Bench, store: Faulty) -> None:
    """The store is there and takes the fact: nothing waits, and no retry runs the work again."""
    store.break_next("complete", error=AnswerTooLarge("100 bytes, and 10 are kept"))
    attempt = bench.attempt()
    assert attempt.complete(b"large") is None
    assert bench.seen(events.AnswerNotKept) == [events.AnswerNotKept(attempt.identity, 1, "too_large")]
    assert bench.seen(events.RecordingFailed) == []
    with pytest.raises(NotReplayable, match="too_large"):
        bench.begin()


def test_an_answer_that_turns_out_too_large_later_is_recorded_as_done(bench: Bench, store: Faulty) -> None:
    """The store was away at first; its next word is that this answer is never kept."""
    store.break_next("complete")
    store.break_next("complete", error=AnswerTooLarge("100 bytes, and 10 are kept"))
    bench.attempt().complete(b"large")
    pass_time(bench, 1)
    assert len(bench.seen(events.RecordingRecovered)) == 1
    with pytest.raises(NotReplayable, match="too_large"):
        bench.begin()


def test_at_the_end_of_a_program_the_fact_is_tried_where_the_answer_failed(bench: Bench, store: Faulty) -> None:
    """What refuses an answer may take the fact: a program's last try is not spent on the answer alone."""
    store.break_next("complete", times=2)
    bench.attempt().complete(b"receipt")
    left_behind = bench.idem.store
    bench.idem.close()
    record = left_behind.get(identify("t", "charge", "k"))
    assert isinstance(record, Record)
    assert (record.state, record.reason) == (State.TOMBSTONE, "not_recordable")
    assert bench.seen(events.RecordingLost) == []
