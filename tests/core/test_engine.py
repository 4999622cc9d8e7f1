"""The engine over a store: what begin, run and resolve give, one behaviour a test."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from idemcore import (
    SINGLE_TENANT,
    Attempt,
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    Incomparable,
    InProgress,
    KeyInvalid,
    KeyMissing,
    MemoryStore,
    NotReplayable,
    OutcomeUnknown,
    Policy,
    RecordUnreadable,
    Replay,
    ScopeMissing,
    StoreUnavailable,
    events,
)
from idemcore.codec import JSON
from idemcore.identity import identify
from idemcore.record import Answer, Record, UnreadableRecord
from tests.core.engine_fixtures import BLOCK, ELEVEN_EUROS, TEN_EUROS, Bench, Faulty, make_bench

IDENTITY = identify("t", "charge", "k")


@pytest.fixture
def bench() -> Bench:
    return make_bench()


def test_a_completed_operation_is_replayed_byte_for_byte(bench: Bench) -> None:
    """The second request gets the body, the meta and the time of the first."""
    with bench.attempt() as attempt:
        attempt.complete(b"\x00receipt", {"n": 1})
    outcome = bench.replay().outcome
    assert (outcome.body, outcome.meta, outcome.kind) == (b"\x00receipt", {"n": 1}, "returned")
    assert outcome.completed_at == datetime.fromtimestamp(bench.clock(), UTC)


def test_a_racing_retry_is_told_to_wait_as_long_as_the_run_has_taken(bench: Bench) -> None:
    """Busy: retry_after is the elapsed time, at least a second, at most what is left of the lease."""
    attempt = bench.attempt()
    for elapsed, expected in [(0.0, 1.0), (7.0, 7.0), (15.0, 8.0)]:
        bench.clock.advance(elapsed)
        with pytest.raises(InProgress) as caught:
            bench.begin()
        assert caught.value.retry_after == pytest.approx(expected)
    attempt.complete(b"")


def test_the_same_key_with_another_request_is_refused_and_the_first_answer_stays(bench: Bench) -> None:
    """KEY-05: a mismatch runs nothing, changes nothing, and a true retry still replays afterwards."""
    with bench.attempt() as attempt:
        attempt.complete(b"100")
    with pytest.raises(FingerprintMismatch):
        bench.begin(fingerprint=ELEVEN_EUROS)
    assert bench.replay().outcome.body == b"100"


def test_a_crashed_owner_blocks_its_key_for_the_lease_and_no_longer(bench: Bench) -> None:
    """LEA-01: refused before 30 s, taken over as attempt 2 afterwards, and another amount never."""
    crashed = bench.attempt()
    bench.clock.advance(29.9)
    with pytest.raises(InProgress):
        bench.begin()
    bench.clock.advance(0.2)
    with pytest.raises(FingerprintMismatch):
        bench.begin(fingerprint=ELEVEN_EUROS)
    second = bench.attempt()
    assert (crashed.number, second.number) == (1, 2)


def test_a_late_owner_cannot_overwrite_and_is_handed_the_winners_answer(bench: Bench) -> None:
    """LEA-03: the first owner wakes after a takeover; its caller gets what the second one recorded."""
    late = bench.attempt()
    bench.clock.advance(31)
    with bench.attempt() as winner:
        winner.complete(b"winner")
    given = late.complete(b"late")
    assert given is not None
    assert given.outcome.body == b"winner"
    assert bench.replay().outcome.body == b"winner"
    assert bench.seen(events.LateFinish) == [events.LateFinish(late.identity, 1, winner_given=True)]


def test_a_late_owner_that_finishes_first_is_refused_and_keeps_its_own_answer(bench: Bench) -> None:
    """LEA-03: while the second run is still going there is no winner yet, and the late one records nothing."""
    late = bench.attempt()
    bench.clock.advance(31)
    second = bench.attempt()
    assert late.complete(b"late") is None
    assert bench.seen(events.LateFinish) == [events.LateFinish(late.identity, 1, winner_given=False)]
    second.complete(b"second")
    assert bench.replay().outcome.body == b"second"


def test_nobody_took_over_so_a_slow_owner_still_records_its_answer(bench: Bench) -> None:
    """A run past its lease that nobody replaced is not punished for being slow."""
    slow = bench.attempt()
    bench.clock.advance(100)
    assert slow.complete(b"slow") is None
    assert bench.replay().outcome.body == b"slow"


def test_retention_is_counted_from_completion_and_then_the_key_runs_anew() -> None:
    """SWE-04: within the retention a retry replays; after it, and max_hold, the key is a new operation."""
    hour = timedelta(hours=1)
    bench = make_bench(policy=Policy(retention=hour, lease=hour, max_hold=hour))
    attempt = bench.attempt()
    bench.clock.advance(3600)
    attempt.complete(b"x")
    bench.clock.advance(3599)
    assert isinstance(bench.begin(), Replay)
    bench.clock.advance(2)
    assert bench.attempt(fingerprint=ELEVEN_EUROS).number == 1


def test_the_default_retention_is_a_day() -> None:
    """SWE-04: a default that outlives the retry window of ordinary clients."""
    assert Policy().retention == timedelta(hours=24)


def test_under_block_an_abandoned_run_is_never_repeated_by_itself(bench: Bench) -> None:
    """The lease is over and nobody knows what happened: refused until an operator says."""
    bench.attempt(policy=BLOCK)
    bench.clock.advance(31)
    for policy in (BLOCK, Policy()):  # the claim is on hold, whatever the second request's own policy
        with pytest.raises(OutcomeUnknown):
            bench.begin(policy=policy)


@pytest.mark.parametrize(
    ("verdict", "then"),
    [
        ("not_done", "runs as attempt 2"),
        ("done", "not replayable"),
        (Answer("returned", b"", b"receipt 7"), "replays receipt 7"),
    ],
)
def test_an_operator_settles_an_unknown_outcome(bench: Bench, verdict: Any, then: str) -> None:
    """Three verdicts, each by compare-and-set on the record that was looked at, each with an event."""
    bench.attempt(policy=BLOCK).unknown("provider timed out")
    record = bench.idem.get(IDENTITY)
    assert isinstance(record, Record)
    assert (record.state, record.reason) == ("unknown", "provider timed out")
    assert not bench.idem.resolve(IDENTITY, b"x" * 16, verdict)
    assert bench.idem.resolve(IDENTITY, record.token, verdict)
    assert len(bench.seen(events.Resolved)) == 1
    if then == "runs as attempt 2":
        assert bench.attempt(policy=BLOCK).number == 2
    elif then == "not replayable":
        with pytest.raises(NotReplayable):
            bench.begin()
    else:
        assert bench.replay().outcome.body == b"receipt 7"


@pytest.mark.parametrize(
    ("engines", "said", "days"),
    [(1, None, 30), (90, None, 90), (1, 365, 365), (90, 2, 2)],
    ids=["thirty at the least", "as the engine's", "as said", "as said, if shorter"],
)
def test_a_verdict_outlasts_the_longest_retention_that_nobody_asked_for(
    engines: int, said: int | None, days: int
) -> None:
    """SWE-04: settled long after its record's own time, what is done stays done while retries may come."""
    bench = make_bench(policy=Policy(on_abandoned="block", retention=timedelta(days=engines)))
    bench.attempt()
    bench.clock.advance(200 * 86_400)
    record = bench.idem.get(IDENTITY)
    assert isinstance(record, Record)
    kept = None if said is None else timedelta(days=said)
    assert bench.idem.resolve(IDENTITY, record.token, "done", retention=kept)
    bench.clock.advance(days * 86_400 - 60)
    with pytest.raises(NotReplayable):
        bench.begin()
    bench.clock.advance(120)
    bench.attempt()


def test_a_verdict_never_shortens_what_its_record_was_promised(bench: Bench) -> None:
    """SWE-04: an early one leaves the record its own time, however short the retention it came with."""
    bench.attempt(policy=Policy(retention=timedelta(days=90))).unknown("timeout")
    record = bench.idem.get(IDENTITY)
    assert isinstance(record, Record)
    assert bench.idem.resolve(IDENTITY, record.token, "done", retention=timedelta(seconds=1))
    bench.clock.advance(89 * 86_400)
    with pytest.raises(NotReplayable):
        bench.begin()


def test_a_verdict_of_another_kind_is_refused(bench: Bench) -> None:
    """A typing mistake of an operator's script must not settle a payment."""
    with pytest.raises(ConfigurationError):
        bench.idem.resolve(IDENTITY, b"", "finished")  # type: ignore[arg-type]
    for verdict in (Answer("json", b"", b"1"), Answer("returned", b"", "1")):  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="bytes as body"):
            bench.idem.resolve(IDENTITY, b"", verdict)


def test_a_caller_may_wait_for_the_run_in_progress() -> None:
    """With `wait` a racing retry gets the answer as soon as it is there."""
    bench = make_bench(policy=Policy(wait=timedelta(seconds=5)))
    attempt = bench.attempt()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        bench.clock.advance(seconds)
        if len(slept) == 3:
            attempt.complete(b"soon")

    patient = Engine(bench.idem.store, policy=bench.idem.policy, monotonic=bench.clock, sleep=sleep)
    begun = patient.begin(scope="t", operation="charge", key="k", fingerprint=TEN_EUROS)
    assert isinstance(begun, Replay)
    assert (begun.outcome.body, len(slept)) == (b"soon", 3)


def test_waiting_ends_at_its_limit(bench: Bench) -> None:
    """`wait` is a bound: afterwards the caller is told that the run is still in progress."""
    bench.attempt()
    started = bench.clock()
    with pytest.raises(InProgress):
        bench.begin(policy=Policy(wait=timedelta(seconds=2)))
    assert bench.clock() - started == pytest.approx(2)


def test_a_lost_acknowledgement_of_the_reserve_is_recognised_on_the_next_try() -> None:
    """RAC-04: the claim was written and the answer got lost: a store error, and after the lease it runs."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("reserve", after=True)
    with pytest.raises(StoreUnavailable):
        bench.begin()
    bench.clock.advance(31)
    assert bench.attempt().number == 2


def test_a_store_that_is_down_runs_nothing() -> None:
    """DEG-01: the error names the store, keeps its cause, and no attempt is handed out."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("reserve", error=StoreUnavailable("no route"))
    with pytest.raises(StoreUnavailable):
        bench.begin()
    assert [type(event) for event in bench.events] == [events.StoreFailed]


def test_lost_races_are_bounded() -> None:
    """A record that keeps changing hands ends in StoreUnavailable, not in an endless loop (DEG-02)."""
    store = Faulty()
    bench = make_bench(store)
    attempt = bench.attempt()
    attempt.release()
    entry = store.inner._shelf.entries[attempt.identity]

    def lose(*_: object) -> bool:
        entry.token = os.urandom(16)
        return False

    store.inner.take_over = lose
    with pytest.raises(StoreUnavailable):
        bench.begin()


def test_a_record_that_somebody_has_locked_is_one_in_progress() -> None:
    """LEA-01: nothing has changed and it cannot be had, so somebody works on it; nobody waits for the lock."""
    store = Faulty()
    bench = make_bench(store)
    bench.attempt().release()
    store.inner.take_over = lambda *args: False
    with pytest.raises(InProgress) as caught:
        bench.begin()
    assert caught.value.retry_after == 1.0


class _Rules:
    """A fingerprinter that knows today's rule and the ones that it is told of."""

    def __init__(self, current: str, **older: str) -> None:
        self.current = current
        self._known = {"v1.exact": current, **{tag.replace("_", "."): value for tag, value in older.items()}}

    def under(self, tag: str) -> str | None:
        return self._known.get(tag)


def test_a_record_made_under_an_older_rule_is_still_recognised(bench: Bench) -> None:
    """CAN-09: the older rule is known, so the retry replays; a different request is still refused."""
    with bench.attempt(fingerprint="v0.old:aa") as attempt:
        attempt.complete(b"old")
    assert bench.replay(fingerprint=_Rules(TEN_EUROS, v0_old="v0.old:aa")).outcome.body == b"old"
    with pytest.raises(FingerprintMismatch):
        bench.begin(fingerprint=_Rules(TEN_EUROS, v0_old="v0.old:bb"))


def test_a_record_made_under_a_rule_that_is_gone_is_refused(bench: Bench) -> None:
    """CAN-09: never a silent second run, never a match that was not computed."""
    with bench.attempt(fingerprint="v0.old:aa") as attempt:
        attempt.complete(b"old")
    with pytest.raises(Incomparable):
        bench.begin(fingerprint=TEN_EUROS)


def test_a_takeover_under_a_newer_rule_still_hands_the_winner_to_the_late_owner(bench: Bench) -> None:
    """The record keeps the older rule's fingerprint, and both attempts are for that same request."""
    late = bench.attempt(fingerprint="v0.old:aa")
    bench.clock.advance(31)
    newer = _Rules(TEN_EUROS, v0_old="v0.old:aa")
    bench.attempt(fingerprint=newer).complete(b"second")
    given = late.complete(b"late")
    assert given is not None
    assert given.outcome.body == b"second"


def test_a_damaged_record_is_neither_run_nor_replayed(bench: Bench) -> None:
    """Row 1 of the table, and an answer whose meta is no JSON: refused, for an operator to look at."""
    bench.idem.store.reserve = lambda claim: UnreadableRecord("format 9")  # type: ignore[method-assign]
    with pytest.raises(RecordUnreadable, match="format 9"):
        bench.begin()


def test_a_pickle_in_a_record_is_never_loaded(bench: Bench, tmp_path: Any) -> None:
    """SEC-02: bytes that would run code when unpickled stay bytes; the record counts as damaged."""
    import pickle

    target = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> Any:
            return (open, (str(target), "w"))

    attempt = bench.attempt()
    evil = Answer("raised", pickle.dumps(Evil()), pickle.dumps(Evil()))
    bench.idem.store.complete(attempt._claim, evil)
    with pytest.raises(RecordUnreadable):
        bench.begin()
    assert not target.exists()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"key": None}, KeyMissing),
        ({"key": ""}, KeyMissing),
        ({"key": "k" * 256}, KeyInvalid),
        ({"key": "é" * 128}, KeyInvalid),
        ({"key": "a\0b"}, KeyInvalid),
        ({"key": "\ud800"}, KeyInvalid),
        ({"scope": None}, ScopeMissing),
        ({"scope": ""}, ScopeMissing),
        ({"scope": ("a", "")}, ScopeMissing),
        ({"scope": ()}, ScopeMissing),
        ({"scope": True}, ConfigurationError),
        ({"scope": 1.5}, ConfigurationError),
        ({"operation": ""}, ConfigurationError),
        ({"fingerprint": None}, ConfigurationError),
        ({"fingerprint": 7}, ConfigurationError),
        ({"fingerprint": ""}, ConfigurationError),
        ({"fingerprint": "f" * 1025}, ConfigurationError),
        ({"fingerprint": _Rules("f" * 1025)}, ConfigurationError),
        ({"fingerprint": "v1.exact:\ud800"}, ConfigurationError),
    ],
)
def test_bad_identities_are_refused_before_the_store_is_asked(changed: Any, error: type[Exception]) -> None:
    """KEY-06, KEY-07: never shared, never truncated, never a database error."""
    store = Faulty()
    bench = make_bench(store)
    with pytest.raises(error):
        bench.begin(**changed)
    assert store.calls == []


def test_the_longest_fingerprint_is_taken(bench: Bench) -> None:
    """1,024 characters: beyond 65,535 one store of several had no room, and said so by an error of its own."""
    longest = "v1.own:" + "f" * 1017
    bench.attempt(fingerprint=longest).complete(b"")
    bench.replay(fingerprint=longest)


def test_scopes_that_differ_never_share_a_key(bench: Bench) -> None:
    """KEY-01, SEC-04: each of these callers runs its own operation under the one key."""
    scopes: list[Any] = [
        "a", "b", "~single", SINGLE_TENANT, ("a", "b"), ("a,b",), ("ab",), "~(1:a1:b)", ("a", 1), ("a", "1x"),
        "x" * 200, "x" * 199 + "y",
    ]  # fmt: skip
    for scope in scopes:
        bench.attempt(scope=scope).complete(repr(scope).encode())
    for scope in scopes:
        assert bench.replay(scope=scope).outcome.body == repr(scope).encode()


def test_an_id_is_the_same_scope_as_number_and_as_text(bench: Bench) -> None:
    """A tenant id that comes from a token once as 7 and once as "7" is one tenant."""
    bench.attempt(scope=7).complete(b"seven")
    assert bench.replay(scope="7").outcome.body == b"seven"


def test_operations_do_not_share_keys_and_long_ones_are_not_cut(bench: Bench) -> None:
    """FUN-03: the operation is part of the identity; two that differ in their last character are two."""
    names = ["charge", "refund", "x" * 300 + "a", "x" * 300 + "b"]
    for name in names:
        bench.attempt(operation=name).complete(name.encode())
    for name in names:
        assert bench.replay(operation=name).outcome.body == name.encode()


def test_use_before_bind_and_a_second_bind_are_configuration_errors() -> None:
    """An application factory that forgets bind is told so, and nothing runs unprotected."""
    idem = Engine()
    with pytest.raises(ConfigurationError, match="bind"):
        idem.begin(scope="t", operation="o", key="k", fingerprint=TEN_EUROS)
    idem.bind("memory://")
    assert isinstance(idem.begin(scope="t", operation="o", key="k", fingerprint=TEN_EUROS), Attempt)
    with pytest.raises(ConfigurationError):
        idem.bind(MemoryStore())


def test_a_tables_name_goes_with_a_databases_url(tmp_path: Path) -> None:
    """Where it could not be used it is refused, and the engine may still be bound."""
    idem = Engine()
    for store in (MemoryStore(), "memory://", "redis://127.0.0.1"):
        for names in ({"table": "kept"}, {"schema": "own"}):
            with pytest.raises(ConfigurationError, match="table"):
                idem.bind(store, **names)
    idem.bind(f"sqlite:///{tmp_path}/records.db", table="kept")
    idem.create_schema()
    with closing(sqlite3.connect(tmp_path / "records.db")) as database:
        assert database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("kept",)]
    idem.close()


def test_run_calls_once_and_gives_the_value_back() -> None:
    """FUN-02: None, 0, "", [] and False are results like any other."""
    bench = make_bench()
    calls: list[int] = []
    values: list[Any] = [None, 0, "", [], False, {"a": [1, 2.5, "é"]}]
    for number, value in enumerate(values):

        def work(value: Any = value, number: int = number) -> Any:
            calls.append(number)
            return value

        asked: dict[str, Any] = {
            "scope": "t", "operation": "o", "key": f"k{number}", "fingerprint": TEN_EUROS, "codec": JSON,
        }  # fmt: skip
        first, second = bench.idem.run(work, **asked), bench.idem.run(work, **asked)
        assert (first.value, first.replayed) == (value, False)
        assert (second.value, second.replayed) == (value, True)
        assert type(second.value) is type(value)
    assert calls == [0, 1, 2, 3, 4, 5]


def test_a_result_that_cannot_be_kept_is_returned_and_never_computed_again(bench: Bench) -> None:
    """A tuple is no exact JSON: the caller has its result, the retry is told, and nothing runs twice."""
    calls: list[int] = []

    def work() -> Any:
        calls.append(1)
        return (1, 2)

    asked: dict[str, Any] = {
        "scope": "t", "operation": "o", "key": "k", "fingerprint": TEN_EUROS, "codec": JSON,
    }  # fmt: skip
    assert bench.idem.run(work, **asked).value == (1, 2)
    with pytest.raises(NotReplayable) as caught:
        bench.idem.run(work, **asked)
    assert (caught.value.reason, calls) == ("not_encodable", [1])
    assert len(bench.seen(events.AnswerNotKept)) == 1


def test_20_threads_run_an_operation_once() -> None:
    """RAC-01: every other caller gets the same result or an in-progress error, and no other error."""
    idem = Engine("memory://")
    barrier, ran, seen = threading.Barrier(20), [], []

    def work() -> str:
        ran.append(1)
        return "done"

    def call() -> None:
        barrier.wait()
        try:
            result = idem.run(work, scope="t", operation="o", key="k", fingerprint=TEN_EUROS, codec=JSON)
            seen.append(result.value)
        except InProgress:
            seen.append("in progress")

    threads = [threading.Thread(target=call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ran == [1]
    assert len(seen) == 20
    assert set(seen) <= {"done", "in progress"}


def test_a_slow_operation_does_not_hold_up_others() -> None:
    """MEM-04: while one key's work is under way, others start, finish and replay."""
    idem = Engine("memory://")
    entered, leave = threading.Event(), threading.Event()

    def slow() -> str:
        entered.set()
        assert leave.wait(30)
        return "slow"

    def call(work: Any, key: str) -> Any:
        return idem.run(work, scope="t", operation="o", key=key, fingerprint=TEN_EUROS, codec=JSON).value

    thread = threading.Thread(target=call, args=(slow, "a"))
    thread.start()
    assert entered.wait(30)
    assert [call(lambda: "quick", key) for key in "bcdb"] == ["quick"] * 4
    leave.set()
    thread.join()


def test_sweep_counts_finished_and_abandoned_over_all_batches(bench: Bench) -> None:
    """SWE-01: ten dead records and one dead claim go in batches of four; what lives stays."""
    for number in range(10):
        bench.attempt(key=f"done-{number}").complete(b"")
    bench.attempt(key="crashed")
    bench.clock.advance(2 * 86400)
    bench.attempt(key="alive")  # its own write removes a few of the dead, see the memory store
    left = sum(1 for _ in bench.idem.store.find(limit=100)) - 1
    swept = bench.idem.sweep(batch=4)
    assert swept.removed == left
    assert bench.idem.sweep().removed == 0
    assert [found.identity.key for found in bench.idem.store.find(limit=100)] == ["alive"]


def test_an_observer_that_raises_is_in_nobodys_way(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged by the name of the event; the operation goes on."""

    def bad(event: events.Event) -> None:
        raise RuntimeError("observer")

    idem = Engine("memory://", observers=[bad])
    begun = idem.begin(scope="t", operation="o", key="secret-key", fingerprint=TEN_EUROS)
    assert isinstance(begun, Attempt)
    assert "Started" in caplog.text
    assert "secret-key" not in caplog.text


def test_events_and_errors_never_show_key_or_scope(bench: Bench) -> None:
    """What may end up in a log names an identity by its digest only."""
    attempt = bench.attempt(key="secret-key", scope="secret-tenant")
    with pytest.raises(InProgress) as caught:
        bench.begin(key="secret-key", scope="secret-tenant")
    attempt.complete(b"")
    texts = [str(caught.value), repr(caught.value), repr(attempt), *map(str, bench.events)]
    texts += map(repr, bench.events)
    assert all("secret" not in text for text in texts)
    assert all(attempt.identity.digest in text for text in texts[:1] + [str(event) for event in bench.events])


def test_on_mismatch_ignore_replays_but_never_takes_a_claim_over(bench: Bench) -> None:
    """Rows 5 and 9: the first answer is given for any request, but a dead claim keeps its own request."""
    ignore = Policy(on_mismatch="ignore")
    crashed = bench.attempt()
    bench.clock.advance(31)
    with pytest.raises(FingerprintMismatch):
        bench.begin(fingerprint=ELEVEN_EUROS, policy=ignore)
    crashed.complete(b"ten")
    assert bench.replay(fingerprint=ELEVEN_EUROS, policy=ignore).outcome.body == b"ten"


def test_a_clock_that_is_wrong_on_this_host_steals_no_lease() -> None:
    """Leases are judged by the store's clock alone; the engine's own runs 35 s ahead here."""
    bench = make_bench()
    bench.attempt()
    ahead = Engine(bench.idem.store, monotonic=lambda: bench.clock() + 35)
    with pytest.raises(InProgress):
        ahead.begin(scope="t", operation="charge", key="k", fingerprint=TEN_EUROS)


def test_a_takeover_of_an_unfinished_run_is_announced_and_that_of_a_released_one_is_not(bench: Bench) -> None:
    """A likely double effect is worth a warning; a retry after a clean failure is not."""
    bench.attempt(key="released").release()
    bench.attempt(key="released")
    assert bench.seen(events.TakenOver) == []
    dead = bench.attempt()
    bench.clock.advance(31)
    bench.attempt()
    assert bench.seen(events.TakenOver) == [events.TakenOver(dead.identity, 2, age=31.0)]


def test_a_run_that_died_under_block_is_announced_when_a_retry_finds_it(bench: Bench) -> None:
    """A killed process announces nothing itself: the first retry after its lease raises the alarm, once.

    Another run that dies, after an operator has freed the key, is news again.
    """
    alarms = []
    for number in (1, 2):
        dead = bench.attempt(policy=BLOCK)
        bench.clock.advance(31)
        for _ in range(3):
            with pytest.raises(OutcomeUnknown):
                bench.begin(policy=BLOCK)
        alarms.append(events.OutcomeInDoubt(dead.identity, number, "abandoned"))
        assert bench.seen(events.OutcomeInDoubt) == alarms
        assert len(bench.seen(events.Refused)) == 3 * number
        record = bench.idem.get(dead.identity)
        assert isinstance(record, Record)
        assert bench.idem.resolve(dead.identity, record.token, "not_done")


def test_what_was_said_of_records_takes_little_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack of dead runs fills no memory; what is forgotten is said again, and nothing is left out."""
    monkeypatch.setattr("idemcore.alarms._REMEMBERED", 2)
    for key in "abc":
        bench.attempt(policy=BLOCK, key=key)
    bench.clock.advance(31)
    for key in "aabbcca":
        with pytest.raises(OutcomeUnknown):
            bench.begin(policy=BLOCK, key=key)
    assert len(bench.seen(events.OutcomeInDoubt)) == 4


@pytest.mark.parametrize("wrong", [object(), 7, Engine])
def test_something_that_is_no_store_is_refused_at_once(wrong: Any) -> None:
    """A SQLAlchemy engine, say: the message tells how it goes in."""
    with pytest.raises(ConfigurationError, match="SQLAlchemyStore"):
        Engine(wrong)


def test_a_record_that_cannot_be_read_raises_an_alarm(bench: Bench) -> None:
    """An operator has to look: the event is an error, not a note of a refusal; one is enough."""
    bench.idem.store.reserve = lambda claim: UnreadableRecord("format 9")  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(RecordUnreadable):
            bench.begin()
    assert len(bench.seen(events.Refused)) == 3
    assert [event.reason for event in bench.seen(events.RecordDamaged)] == ["format 9"]  # type: ignore[attr-defined]


class _OneWay:
    """A codec whose type has changed since."""

    def encode(self, value: object) -> bytes:
        return b"1"

    def decode(self, body: bytes) -> object:
        raise ValueError("another type")


def test_an_outcome_that_cannot_be_given_back_raises_an_alarm(bench: Bench) -> None:
    """Its callers are refused from now on; the only event was that it was replayed."""
    asked: Any = {"scope": "t", "operation": "charge", "key": "k", "fingerprint": TEN_EUROS, "codec": _OneWay()}
    bench.idem.run(lambda: 1, **asked)
    for _ in range(2):
        with pytest.raises(RecordUnreadable):
            bench.idem.run(lambda: 1, **asked)
    assert bench.seen(events.RecordDamaged) == [
        events.RecordDamaged(IDENTITY, "its outcome cannot be given back")
    ]


def test_a_kept_exception_of_the_functions_own_is_no_alarm(bench: Bench) -> None:
    """It looked something else up, found it unreadable, and that is its answer."""

    def look_up() -> None:
        raise RecordUnreadable("of another operation")

    asked: Any = {"scope": "t", "operation": "charge", "key": "k", "fingerprint": TEN_EUROS, "codec": JSON}
    for _ in range(2):
        with pytest.raises(RecordUnreadable, match="of another"):
            bench.idem.run(look_up, policy=Policy(keep=(RecordUnreadable,)), **asked)
    assert bench.seen(events.RecordDamaged) == []


def test_ones_own_claim_whose_acknowledgement_was_lost_is_no_takeover_to_announce(bench: Bench) -> None:
    """Row 7b: user code has not run under it yet, so no effect can be repeated."""
    real, calls = bench.idem.store.reserve, []

    def lost(claim: Any) -> Any:
        calls.append(claim)
        if len(calls) == 1:
            real(claim)
            bench.clock.advance(31)
        return real(claim)

    bench.idem.store.reserve = lost  # type: ignore[method-assign]
    assert bench.attempt().number == 1
    assert bench.seen(events.TakenOver) == []


def test_the_content_is_part_of_the_identity_where_the_policy_says_so(bench: Bench) -> None:
    """Another request under the key is another operation; a wrong operation is refused as ever."""
    policy = Policy(identity="key+content")
    bench.attempt(policy=policy).complete(b"ten")
    bench.attempt(policy=policy, fingerprint=ELEVEN_EUROS).complete(b"eleven")
    assert bench.replay(policy=policy).outcome.body == b"ten"
    assert bench.idem.get(identify("t", "charge", "k", TEN_EUROS)) is not None
    with pytest.raises(ConfigurationError):
        bench.begin(policy=policy, operation=None)
