"""How an attempt ends, and what that leaves under its key: the settling table, seen from outside."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from idemcore import (
    Attempt,
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    InProgress,
    KeyMissing,
    LeaseLost,
    MemoryStore,
    NotReplayable,
    OutcomeUnknown,
    Policy,
    Replay,
    StoreUnavailable,
    current_attempt,
    engine,
    errors,
    events,
)
from idemcore.codec import JSON
from idemcore.identity import identify
from idemcore.machine import Settlement
from idemcore.raised import RecordedFailure
from idemcore.record import Record
from idemcore.testing.clock import FakeClock
from tests.core.engine_fixtures import BLOCK, ELEVEN_EUROS, TEN_EUROS, Bench, Faulty, make_bench
from tests.interrupts import Interrupts


@pytest.fixture
def bench() -> Bench:
    return make_bench()


class CardDeclined(Exception):
    def __init__(self, code: int, detail: str) -> None:
        super().__init__(f"card declined: {detail}")
        self.code = code
        self.detail = detail


class Oddity(Exception):
    def __init__(self, card: object) -> None:
        super().__init__("odd")
        self.card = card


def free_for_another_request(bench: Bench) -> bool:
    try:
        begun = bench.begin(fingerprint=ELEVEN_EUROS)
    except FingerprintMismatch:
        return False
    assert isinstance(begun, Attempt)
    return True


def test_leaving_by_an_exception_releases_the_key_to_the_same_request_only(bench: Bench) -> None:
    """OUT-03: the default is a rerun of the same request; another amount is refused even then."""
    with pytest.raises(ValueError, match="boom"), bench.attempt():
        raise ValueError("boom")
    assert not free_for_another_request(bench)
    assert bench.attempt().number == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_base_exceptions_settle_and_pass_unchanged(bench: Bench, error: type[BaseException]) -> None:
    """LEA-07: the very exception comes out, and the key is free for the same request at once."""
    raised = error()
    with pytest.raises(error) as caught, bench.attempt():
        raise raised
    assert caught.value is raised
    assert bench.attempt().number == 2


def test_under_block_an_exception_leaves_the_outcome_unknown(bench: Bench) -> None:
    """OUT-03: what may have charged is not repeated by itself."""
    with pytest.raises(ValueError, match="after the charge"), bench.attempt(policy=BLOCK):
        raise ValueError("after the charge")
    with pytest.raises(OutcomeUnknown):
        bench.begin(policy=BLOCK)
    assert [type(event) for event in bench.events[-2:]] == [events.OutcomeInDoubt, events.Refused]


def test_an_exception_named_unknown_holds_the_key_under_rerun_too(bench: Bench) -> None:
    """A provider's timeout is in doubt wherever it is named so."""
    policy = Policy(unknown=(TimeoutError,))
    with pytest.raises(TimeoutError), bench.attempt(policy=policy):
        raise TimeoutError
    with pytest.raises(OutcomeUnknown):
        bench.begin()


class BankTimeout(Exception):
    """Leaves it open whether the bank has paid."""


class BankRefused(Exception):
    """The bank's final answer."""


NAMED = Policy(unknown=(BankTimeout,), keep=(BankRefused,))


@pytest.mark.parametrize(
    ("left", "error", "record"),
    [
        (BankTimeout(), BankTimeout, "unknown"),
        (BankRefused(), BankRefused, "completed"),
        (ValueError(), ValueError, "released"),
        (None, ConfigurationError, "tombstone"),
    ],
    ids=["in doubt", "kept", "failed", "unsettled"],
)
def test_a_block_that_is_left_in_another_context_is_settled(
    bench: Bench, left: Exception | None, error: type[Exception], record: str
) -> None:
    """A generator that a thread pool drives runs each step in a context of its own: ValueError of contextvars
    came before the settlement, and the timeout that was named unknown ran again.
    """

    def steps() -> Iterator[str]:
        with bench.attempt(policy=NAMED):
            yield "under way"
            if left is not None:
                raise left

    driven = steps()
    assert copy_context().run(next, driven) == "under way"
    with pytest.raises(error):
        copy_context().run(next, driven)
    found = bench.idem.get(identify("t", "charge", "k"))
    assert isinstance(found, Record)
    assert found.state.value == record


def test_a_settled_block_is_left_in_another_context_without_an_error(bench: Bench) -> None:
    """As a framework leaves a dependency; and where the attempt was current there, it is no more."""
    attempt = bench.attempt()
    entered = copy_context()
    entered.run(attempt.__enter__)
    attempt.complete(b"paid")
    inside = entered.copy()
    inside.run(attempt.__exit__, None, None, None)
    assert inside.run(current_attempt, None) is None
    assert bench.replay().outcome.body == b"paid"


@pytest.mark.parametrize(
    ("error", "record"),
    [
        (ExceptionGroup("", [BankTimeout()]), "unknown"),
        (ExceptionGroup("", [ValueError(), ExceptionGroup("", [BankRefused(), BankTimeout()])]), "unknown"),
        (BaseExceptionGroup("", [KeyboardInterrupt(), BankTimeout()]), "unknown"),
        (ExceptionGroup("", [BankRefused(), ExceptionGroup("", [BankRefused()])]), "completed"),
        (ExceptionGroup("", [BankRefused(), ValueError()]), "released"),
        (BaseExceptionGroup("", [KeyboardInterrupt(), BankRefused()]), "released"),
    ],
    ids=["timeout", "nested", "with Ctrl-C", "kept", "kept and failed", "kept and Ctrl-C"],
)
def test_a_group_of_exceptions_is_judged_by_what_is_in_it(
    bench: Bench, error: BaseExceptionGroup[BaseException], record: str
) -> None:
    """A task group wraps what its tasks raise; a timeout in it was a failure like any other, and paid twice."""
    with pytest.raises(type(error)) as caught, bench.attempt(policy=NAMED):
        raise error
    assert caught.value is error
    found = bench.idem.get(identify("t", "charge", "k"))
    assert isinstance(found, Record)
    assert found.state.value == record


def test_a_class_that_names_every_exception_does_not_hide_the_doubt_in_a_group(bench: Bench) -> None:
    """`keep=(Exception,)` names the group as it names all; the timeout in it is named more nearly."""
    policy = Policy(keep=(Exception,), unknown=(BankTimeout,))
    with pytest.raises(ExceptionGroup), bench.attempt(policy=policy):
        raise ExceptionGroup("", [ValueError(), BankTimeout()])
    with pytest.raises(OutcomeUnknown):
        bench.begin()


def test_a_group_whose_own_class_is_named_is_what_that_says(bench: Bench) -> None:
    """Whoever names groups has thought of what is in them."""
    policy = Policy(keep=(ExceptionGroup,), unknown=(BankTimeout,))
    with pytest.raises(ExceptionGroup), bench.attempt(policy=policy):
        raise ExceptionGroup("", [BankTimeout()])
    assert bench.replay().outcome.kind == "raised"


def test_a_kept_group_comes_back_as_a_recorded_failure(bench: Bench) -> None:
    """Its exceptions have no JSON form; nothing runs again."""

    def pay() -> None:
        ran.append(None)
        raise ExceptionGroup("both", [BankRefused(), BankRefused()])

    ran: list[None] = []
    asked: Any = {"scope": "t", "operation": "charge", "key": "k", "fingerprint": TEN_EUROS, "codec": JSON}
    with pytest.raises(ExceptionGroup):
        bench.idem.run(pay, policy=NAMED, **asked)
    with pytest.raises(RecordedFailure, match="both"):
        bench.idem.run(pay, policy=NAMED, **asked)
    assert ran == [None]


def test_groups_may_be_nested_however_deep(bench: Bench) -> None:
    """Deeper than Python's stack: the claim is settled all the same."""
    deep: Exception = BankTimeout()
    for _ in range(5000):
        deep = ExceptionGroup("", [deep])
    attempt = bench.attempt(policy=NAMED)
    attempt.fail(deep)
    with pytest.raises(OutcomeUnknown):
        bench.begin()


@pytest.mark.parametrize(
    ("end", "frees"),
    [(Attempt.forget, True), (Attempt.refuse, True), (Attempt.release, False)],
)
def test_saying_that_nothing_was_done_frees_the_key(
    bench: Bench, end: Callable[[Attempt], None], frees: bool
) -> None:
    """Forget and a refusal free it for a corrected request; release keeps it for the same one."""
    with bench.attempt() as attempt:
        end(attempt)
    assert free_for_another_request(bench) is frees
    if not frees:
        assert bench.attempt().number == 2


@pytest.mark.parametrize("end", [Attempt.forget, Attempt.refuse, Attempt.release])
@pytest.mark.parametrize("policy", [Policy(), BLOCK])
def test_after_the_first_attempt_a_key_keeps_its_request(
    bench: Bench, end: Callable[[Attempt], None], policy: Policy
) -> None:
    """A crash may have charged 10 euros: a later "nothing was done" cannot make room for 11."""
    bench.attempt()
    bench.clock.advance(31)
    second = bench.attempt(policy=Policy())
    assert second.number == 2
    end(second)
    assert not free_for_another_request(bench)
    assert bench.attempt(policy=policy).number == 3


def test_a_tombstone_never_runs_again_and_says_why(bench: Bench) -> None:
    """Done, but the answer is not kept: retries are told, for as long as the record is kept."""
    with bench.attempt() as attempt:
        attempt.tombstone("too_large")
    with pytest.raises(NotReplayable, match="too_large"):
        bench.begin()


def test_leaving_the_block_unsettled_is_an_error_that_runs_nothing_twice(bench: Bench) -> None:
    """The work may be done and nobody said so: a tombstone, and the programmer is told."""
    with pytest.raises(ConfigurationError, match="unsettled"), bench.attempt():
        pass
    with pytest.raises(NotReplayable, match="unsettled"):
        bench.begin()


def test_an_attempt_is_settled_once(bench: Bench) -> None:
    """A second word is an error and changes nothing."""
    attempt = bench.attempt()
    attempt.complete(b"first")
    words: list[Callable[[], object]] = [attempt.release, attempt.forget, lambda: attempt.complete(b"second")]
    for again in words:
        with pytest.raises(ConfigurationError):
            again()
    assert bench.replay().outcome.body == b"first"


def test_an_exception_after_complete_takes_nothing_back(bench: Bench) -> None:
    """After complete was called the with block never releases: the work is done."""
    with pytest.raises(ValueError, match="late"), bench.attempt() as attempt:  # noqa: PT012 - the order of the two is what is tested
        attempt.complete(b"done")
        raise ValueError("late")
    assert bench.replay().outcome.body == b"done"


def run(bench: Bench, work: Callable[[], Any], policy: Policy) -> Any:
    asked: dict[str, Any] = {"scope": "t", "operation": "o", "key": "k", "fingerprint": TEN_EUROS}
    return bench.idem.run(work, codec=JSON, policy=policy, **asked)


def test_a_kept_exception_is_raised_again_equal_without_running(bench: Bench) -> None:
    """OUT-05: a constructor with other arguments than it passes on is never called for the replay."""
    policy, ran = Policy(keep=(CardDeclined,)), []

    def work() -> None:
        ran.append(1)
        raise CardDeclined(51, "no funds")

    raised: list[CardDeclined] = []
    for _ in range(2):
        with pytest.raises(CardDeclined) as caught:
            run(bench, work, policy)
        raised.append(caught.value)
    first, again = raised
    assert (type(again), again.args, again.code, again.detail) == (type(first), first.args, 51, "no funds")
    assert ran == [1]


def test_a_kept_exception_that_json_cannot_carry_comes_back_as_a_recorded_failure(bench: Bench) -> None:
    """OUT-05: the documented stand-in carries the type's name and the message; never a TypeError."""
    policy = Policy(keep=(Oddity,))

    def work() -> None:
        raise Oddity(object())

    with pytest.raises(Oddity):
        run(bench, work, policy)
    with pytest.raises(RecordedFailure) as caught:
        run(bench, work, policy)
    assert caught.value.type_name.endswith("Oddity")
    assert caught.value.message == "odd"


def test_work_done_but_not_recorded_gives_its_real_answer_and_never_releases(bench: Bench) -> None:
    """OUT-04: complete raises once: the caller has the result, the retry waits, and then replays it."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("complete")
    attempt = bench.attempt()
    assert attempt.complete(b"receipt") is None
    assert "release" not in store.calls
    with pytest.raises(InProgress):
        bench.begin()
    bench.clock.advance(0.3)
    bench.idem.keeper.step()
    assert bench.replay().outcome.body == b"receipt"
    assert len(bench.seen(events.RecordingFailed)) == len(bench.seen(events.RecordingRecovered)) == 1


def test_an_answer_that_the_store_refuses_leaves_a_tombstone_at_once() -> None:
    """SQL-06: an error that is no outage would fail again: the fact is recorded without the answer."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("complete", error=RuntimeError("data too long"), times=2)
    bench.attempt().complete(b"x")
    with pytest.raises(NotReplayable, match="not_recordable"):
        bench.begin()


def test_a_release_that_fails_leaves_the_claim_to_its_lease() -> None:
    """The caller's own exception comes out, an event says so, and after the lease the key works."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("release")
    with pytest.raises(ValueError, match="mine"), bench.attempt():
        raise ValueError("mine")
    assert len(bench.seen(events.ReleaseFailed)) == 1
    with pytest.raises(InProgress):
        bench.begin()
    bench.clock.advance(31)
    assert bench.attempt().number == 2


def test_renewing_keeps_others_out_until_max_hold() -> None:
    """LEA-04: renewals move the lease, never past the start plus max_hold; then LeaseLost says so."""
    bench = make_bench(policy=Policy(lease=timedelta(seconds=30), max_hold=timedelta(seconds=70)))
    attempt = bench.attempt()
    for _ in range(2):
        bench.clock.advance(29)
        attempt.renew()
        with pytest.raises(InProgress):
            bench.begin()
    bench.clock.advance(12)
    with pytest.raises(LeaseLost, match="max_hold"):
        attempt.renew()
    assert bench.attempt().number == 2


def test_renewing_after_a_takeover_is_lease_lost(bench: Bench) -> None:
    """LEA-05: the owner learns of it."""
    attempt = bench.attempt()
    bench.clock.advance(31)
    bench.attempt()
    with pytest.raises(LeaseLost):
        attempt.renew()


def test_child_keys_are_stable_where_they_must_be_and_differ_where_they_must(bench: Bench) -> None:
    """Same over retries, releases, takeovers and rule changes; different per name, scope, operation, key."""
    first = bench.attempt()
    charge = first.child_key("charge")
    first.release()
    second = bench.attempt()
    bench.clock.advance(31)
    third = bench.attempt()
    assert [second.child_key("charge"), third.child_key("charge")] == [charge, charge]
    others = {
        first.child_key("refund"),
        bench.attempt(key="other").child_key("charge"),
        bench.attempt(scope="other").child_key("charge"),
        bench.attempt(operation="other").child_key("charge"),
        bench.attempt(scope="tcharge", operation="x").child_key("charge"),
        bench.attempt(scope="t", operation="chargex").child_key("charge"),
    }
    assert len(others | {charge}) == 7
    assert uuid.UUID(charge).version == 8
    with pytest.raises(ConfigurationError):
        first.child_key("")


def test_a_child_key_never_changes_between_releases() -> None:
    """Typed by hand: a provider still knows the key of an attempt that ran before an upgrade."""
    idem = Engine("memory://")
    begun = idem.begin(scope="tenant-7", operation="charge", key="k1", fingerprint=TEN_EUROS)
    assert isinstance(begun, Attempt)
    assert begun.child_key("stripe") == "601c77a1-d7fc-82ef-b078-dd6407940c25"


def test_the_current_attempt_is_known_inside_and_only_there(bench: Bench) -> None:
    """Nested attempts give way and come back."""
    with pytest.raises(ConfigurationError):
        current_attempt()
    assert current_attempt(None) is None
    with bench.attempt() as outer:
        assert current_attempt() is outer
        assert current_attempt(None) is outer
        with bench.attempt(key="inner") as inner:
            assert current_attempt() is inner
            inner.complete(b"")
        assert current_attempt() is outer
        outer.complete(b"")
    with pytest.raises(ConfigurationError):
        current_attempt()


def test_a_thread_inside_of_a_run_is_told_why_it_has_no_attempt(bench: Bench) -> None:
    """A pool's thread has a context of its own; one that is given the run's has its attempt."""
    with bench.attempt() as attempt, ThreadPoolExecutor(1) as pool:
        with pytest.raises(ConfigurationError, match=r"A thread .* has none: .*copy_context"):
            pool.submit(current_attempt).result()
        assert pool.submit(copy_context().run, current_attempt).result() is attempt
        attempt.complete(b"")


def test_settled_events_name_the_settlement(bench: Bench) -> None:
    """Observers see what became of each attempt."""
    bench.attempt(key="a").complete(b"")
    bench.attempt(key="b").release()
    bench.attempt(key="c").forget()
    settled = [event.settlement for event in bench.seen(events.Settled) if isinstance(event, events.Settled)]
    assert settled == [Settlement.KEEP, Settlement.RETRY, Settlement.FORGET]


def every_error() -> list[type[errors.IdempotencyError]]:
    found: list[type[errors.IdempotencyError]] = [errors.IdempotencyError]
    for cls in found:
        found.extend(cls.__subclasses__())
    return [cls for cls in found if cls.__module__ == "idemcore.errors"]


@pytest.mark.parametrize("cls", every_error())
def test_errors_survive_pickle_and_copy(cls: type[errors.IdempotencyError]) -> None:
    """They cross process pools and task queues with their code, message and attributes."""
    error = cls("what to do next", key_digest="abc")
    error.__dict__["extra"] = 1
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(other) is cls
        assert (str(other), vars(other)) == (str(error), vars(error))
    assert "abc" in str(error)


def test_each_error_has_a_code_and_a_status_hint_of_its_own_kind() -> None:
    """Codes are unique but for a full store, which is an unavailable one to a client."""
    codes = [cls.code for cls in every_error()]
    assert sorted(code for code in set(codes) if codes.count(code) > 1) == ["store_unavailable"]
    assert all(400 <= cls.status_hint < 600 for cls in every_error())
    assert issubclass(KeyMissing, errors.CallerError)
    assert issubclass(StoreUnavailable, errors.TryLater)


def test_a_replayed_outcome_is_a_fresh_value_each_time(bench: Bench) -> None:
    """A caller that changes what it was given changes nothing for the next one."""
    bench.attempt().complete(b"x", {"list": [1]})
    first = bench.replay()
    assert isinstance(first, Replay)
    first.outcome.meta["list"] = "changed"
    assert bench.replay().outcome.meta == {"list": [1]}


@pytest.mark.parametrize(("body", "meta"), [("text", None), (None, None), (b"", {"n": object()})])
def test_completing_with_what_cannot_be_kept_frees_no_key(bench: Bench, body: Any, meta: Any) -> None:
    """The work is done when complete is called: a mistake in its arguments must not run it again."""
    with pytest.raises(ConfigurationError), bench.attempt() as attempt:
        attempt.complete(body, meta)
    with pytest.raises(NotReplayable, match="not_encodable"):
        bench.begin()


def test_a_kind_that_does_not_exist_frees_no_key(bench: Bench) -> None:
    """One store kept it, another could never read it again, a third raised KeyError."""
    kind: Any = "json"
    with pytest.raises(ConfigurationError, match="returned, raised, http"), bench.attempt() as attempt:
        attempt.complete(b"1", kind=kind)
    with pytest.raises(NotReplayable, match="not_encodable"):
        bench.begin()


def nested(levels: int, inner: object = 1) -> Any:
    for level in range(levels):
        inner = {"a": inner} if level % 2 else [inner]
    return inner


def test_meta_is_kept_that_a_deep_stack_can_read(bench: Bench) -> None:
    """A hundred levels; with as many as the stack allowed, a replay from deeper down raised RecursionError."""
    bench.attempt().complete(b"", nested(100))
    assert bench.replay().outcome.meta == nested(100)
    wide = {"wide": [[1]] * 500}
    bench.attempt(key="wide").complete(b"", wide)
    assert bench.replay(key="wide").outcome.meta == wide
    with pytest.raises(ConfigurationError, match="100 levels"):
        bench.attempt(key="deep").complete(b"", {"a": nested(100)})
    with pytest.raises(NotReplayable, match="not_encodable"):
        bench.begin(key="deep")


def test_what_the_stack_has_no_room_to_read_is_told_as_that(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is whole, so nobody is alarmed and nothing runs."""

    class Deep:
        def encode(self, value: object) -> bytes:
            raise AssertionError("nothing runs")

        def decode(self, body: bytes) -> Any:
            raise RecursionError

    ran: list[int] = []
    asked: Any = {"scope": "t", "operation": "charge", "key": "k", "fingerprint": TEN_EUROS}
    bench.idem.run(lambda: ran.append(1), codec=JSON, **asked)
    with pytest.raises(errors.RecordUnreadable, match="is whole"):
        bench.idem.run(lambda: ran.append(2), codec=Deep(), **asked)

    def no_room(record: Record) -> None:
        raise RecursionError

    monkeypatch.setattr(engine, "read_outcome", no_room)
    with pytest.raises(errors.RecordUnreadable, match="is whole"):
        bench.begin()
    assert ran == [1]
    assert bench.seen(events.RecordDamaged) == []


def test_a_caller_that_changes_its_buffer_changes_no_record(bench: Bench) -> None:
    """What was completed with is what is kept: a bytearray is copied."""
    buffer = bytearray(b"first")
    bench.attempt().complete(buffer)  # type: ignore[arg-type]
    buffer[:] = b"other"
    assert bench.replay().outcome.body == b"first"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_an_interrupt_while_recording_loses_no_outcome(error: BaseException) -> None:
    """LEA-07: Ctrl-C in the middle of complete: it passes, the claim stands, the recording is retried."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("complete", error=error)
    with pytest.raises(type(error)), bench.attempt() as attempt:
        attempt.complete(b"receipt")
    with pytest.raises(InProgress):
        bench.begin()
    bench.clock.advance(0.3)
    bench.idem.keeper.step()
    assert bench.replay().outcome.body == b"receipt"


def test_a_signals_exception_while_recording_costs_no_answer() -> None:
    """LEA-07: a time limit that raises an ordinary exception says nothing of the answer, which is kept."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("complete", error=TimeoutError("soft time limit"))
    bench.attempt().complete(b"receipt")
    assert bench.replay().outcome.body == b"receipt"


class OnceAnInterrupt:
    """An observer that Ctrl-C strikes, so often, while it is told of a kind of event."""

    def __init__(self, kind: type[events.Event], times: int = 1) -> None:
        self.kind = kind
        self.left = times

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, self.kind) and self.left:
            self.left -= 1
            raise KeyboardInterrupt


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_while_a_failed_recording_is_told_loses_no_answer(times: int) -> None:
    """LEA-07: the store is away, and Ctrl-C comes while the log is written: it is queued by then."""
    store = Faulty()
    bench = make_bench(store)
    bench.idem.emit._observers += (OnceAnInterrupt(events.RecordingFailed, times),)
    store.break_next("complete")
    with pytest.raises(KeyboardInterrupt), bench.attempt() as attempt:
        attempt.complete(b"receipt")
    bench.clock.advance(0.3)
    bench.idem.keeper.step()
    assert bench.replay().outcome.body == b"receipt"


def test_an_interrupt_while_a_failed_release_is_told_loses_no_doubt() -> None:
    """OUT-03: the store is away, and Ctrl-C comes while the log is written: nothing runs again."""
    store = Faulty()
    bench = make_bench(store, Policy(unknown=(TimeoutError,)))
    bench.idem.emit._observers += (OnceAnInterrupt(events.RecordingFailed),)
    store.break_next("release")
    with pytest.raises(KeyboardInterrupt), bench.attempt():
        raise TimeoutError
    bench.clock.advance(0.3)
    bench.idem.keeper.step()
    bench.clock.advance(31)
    with pytest.raises(OutcomeUnknown):
        bench.begin()


@pytest.mark.parametrize("where", ["_end", "_release", "_release_later"])
def test_an_interrupt_anywhere_inside_a_doubt_forgets_nothing(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """LEA-07, OUT-03: a signal's exception between two steps of unknown: it is recorded all the same."""
    store = Faulty()
    bench = make_bench(store)
    attempt = bench.attempt()
    if where == "_release_later":
        store.break_next("release")
    real, struck = getattr(Attempt, where), []

    def interrupted(*args: Any) -> Any:
        if not struck:
            struck.append(where)
            if where == "_release_later":  # at its beginning: its end is after the doubt was queued
                raise KeyboardInterrupt
        real(*args)
        if where != "_release_later":
            raise KeyboardInterrupt

    monkeypatch.setattr(Attempt, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        attempt.unknown("provider timed out")
    monkeypatch.undo()
    bench.clock.advance(0.5)
    bench.idem.keeper.step()
    bench.clock.advance(31)
    with pytest.raises(OutcomeUnknown):
        bench.begin()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_in_mid_run_leaves_its_parents_claim_alone(tmp_path: Path) -> None:
    """A child that leaves the with block by sys.exit must not release what its parent still works on."""
    pytest.importorskip("sqlalchemy")
    with Engine(f"sqlite:///{tmp_path / 'records.db'}", observers=[]) as idem:
        idem.create_schema()
        asked: dict[str, Any] = {"scope": "t", "operation": "o", "key": "k", "fingerprint": TEN_EUROS}
        begun = idem.begin(**asked)
        assert isinstance(begun, Attempt)
        with begun as attempt:
            child = os.fork()
            if child == 0:
                try:
                    with attempt:
                        sys.exit(0)
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            with pytest.raises(InProgress):
                idem.begin(**asked)
            attempt.complete(b"parent")
        replay = idem.begin(**asked)
        assert isinstance(replay, Replay)
        assert replay.outcome.body == b"parent"


@pytest.mark.parametrize("where", ["_end", "_record", "encode_meta"])
def test_an_interrupt_anywhere_inside_complete_loses_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """LEA-07: a signal's exception strikes between two steps of complete: the fact is recorded all the same."""
    from idemcore import attempt as making

    attempt = bench.attempt()
    place: Any = making if where == "encode_meta" else Attempt
    real = getattr(place, where)

    def interrupted(*args: Any) -> Any:
        real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, where, interrupted)
    with pytest.raises(KeyboardInterrupt), attempt:
        attempt.complete(b"receipt", {"n": 1})
    monkeypatch.undo()
    bench.clock.advance(0.5)
    bench.idem.keeper.step()
    if where == "_record":
        assert bench.replay().outcome.body == b"receipt"
    else:
        with pytest.raises(NotReplayable, match="interrupted"):
            bench.begin()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in weakrefs' callbacks
def test_interrupts_at_random_moments_of_complete_never_lose_a_claim() -> None:
    """A thousand timers go off around complete: whatever was begun to be recorded never runs again."""
    random, clock = Random(7), FakeClock()
    idem = Engine(MemoryStore(clock=clock), observers=[], monotonic=clock, sleep=clock.sleep)
    idem.keeper._rouse = lambda: True  # type: ignore[method-assign]
    called, lost = 0, []
    with Interrupts(KeyboardInterrupt) as interrupts:
        for number in range(1000):
            asked: dict[str, Any] = {
                "scope": "t", "operation": "o", "key": f"k{number}", "fingerprint": TEN_EUROS,
            }  # fmt: skip
            attempt = idem.begin(**asked)
            assert isinstance(attempt, Attempt)
            try:
                try:
                    interrupts.arm(random.uniform(1e-6, 60e-6))
                    attempt.complete(b"receipt")
                finally:
                    interrupts.disarm()
            except KeyboardInterrupt:
                pass
            if attempt.settled:
                called += 1
                clock.advance(0.5)
                idem.keeper.step()
                clock.advance(40)
                try:
                    if isinstance(idem.begin(**asked), Attempt):
                        lost.append(number)
                except NotReplayable:
                    pass
    assert lost == []
    assert called > 100


@pytest.mark.parametrize("error", [StoreUnavailable("down"), RuntimeError("driver"), KeyboardInterrupt()])
def test_a_doubt_that_could_not_be_recorded_is_recorded_later(error: BaseException) -> None:
    """OUT-03: "nothing runs again until an operator settles it" holds over a store that was away, too."""
    store = Faulty()
    bench = make_bench(store, Policy(unknown=(TimeoutError,)))
    store.break_next("release", error=error)
    passes = TimeoutError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(passes), bench.attempt():
        raise TimeoutError
    for _ in range(20):  # until after the lease, the claim being renewed meanwhile
        bench.clock.advance(2)
        bench.idem.keeper.step()
    with pytest.raises(OutcomeUnknown):
        bench.begin()
    assert len(bench.seen(events.OutcomeInDoubt)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_settles_and_renews_nothing_of_its_parents(tmp_path: Path) -> None:
    """Neither by fail, which adapters call, nor by complete or renew: each says whose claim it is."""
    pytest.importorskip("sqlalchemy")
    with Engine(f"sqlite:///{tmp_path / 'records.db'}", observers=[]) as idem:
        idem.create_schema()
        asked: dict[str, Any] = {"scope": "t", "operation": "o", "key": "k", "fingerprint": TEN_EUROS}
        attempt = idem.begin(**asked)
        assert isinstance(attempt, Attempt)
        child = os.fork()
        if child == 0:
            told = 0
            try:
                for verb in (attempt.release, lambda: attempt.complete(b"child"), attempt.renew):
                    try:
                        verb()
                    except (ConfigurationError, LeaseLost):
                        told += 1
                told += attempt.settled
            finally:
                os._exit(told)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        with pytest.raises(InProgress):
            idem.begin(**asked)
        attempt.complete(b"parent")
        replay = idem.begin(**asked)
        assert isinstance(replay, Replay)
        assert replay.outcome.body == b"parent"


def test_a_freed_key_is_freed_later_where_its_store_was_away() -> None:
    """OUT-02: a refusal whose release failed must not leave the corrected request a mismatch for a day."""
    store = Faulty()
    bench = make_bench(store)
    store.break_next("release", times=2)
    with bench.attempt() as attempt:
        attempt.refuse()
    for _ in range(4):
        bench.clock.advance(1)
        bench.idem.keeper.step()
    assert free_for_another_request(bench)
    assert len(bench.seen(events.ReleaseFailed)) == 1


@pytest.mark.parametrize("why", ["bank said \0", "bank said \udc80", "x" * 10_000])
def test_any_reason_can_be_recorded(bench: Bench, why: str) -> None:
    """A reason is for people; one that a database refuses would lose the doubt."""
    bench.attempt().unknown(why)
    record = bench.idem.get(identify("t", "charge", "k"))
    assert isinstance(record, Record)
    assert record.state == "unknown"
    assert record.reason.encode().replace(b"\0", b"") == record.reason.encode()
    assert len(record.reason) <= 200
