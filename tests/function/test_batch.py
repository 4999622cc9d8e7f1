"""Batches: each item once, over failures, restarts, several processes and a stop in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, model_validator

from idemcore import (
    ConfigurationError,
    Engine,
    IdempotencyError,
    InProgress,
    KeyMissing,
    MemoryStore,
    NotReplayable,
    Policy,
    RecordUnreadable,
    StoreUnavailable,
    current_attempt,
    events,
    fingerprint,
)
from idemcore.testing.clock import FakeClock
from idemcore_function import ALL_ARGUMENTS, Item, Report, idempotent, key_of, run_batch, workload
from idemcore_function.decorator import operation_of
from idemcore_function.workload import Workload
from tests.core.engine_fixtures import Bench, Faulty, make_bench


class Sends:
    """A function that writes down whom it was called for, and fails as it is told."""

    def __init__(self, idem: Engine, **options: Any) -> None:
        self.ledger: list[int] = []
        self.fail: dict[int, BaseException] = {}

        @idempotent(idem, key="{n}", namespace="sends", **options)
        def send(n: int, factor: int = 1) -> int:
            self.ledger.append(n)
            if n in self.fail:
                raise self.fail.pop(n)
            return n * factor

        self.send = send


def test_every_item_runs_once_and_is_reported_in_order(idem: Engine) -> None:
    """And a batch that is run again replays it all."""
    sends = Sends(idem)
    first = run_batch(sends.send, range(100), workers=8)
    assert sorted(sends.ledger) == list(range(100))
    assert [item.value for item in first.items] == list(range(100))
    assert first.counts == {"done": 100, "replayed": 0, "failed": 0, "unknown": 0, "left": 0}
    assert first.complete
    again = run_batch(sends.send, range(101), workers=8)
    assert again.counts["replayed"] == 100
    assert again.items[100].status == "done"
    assert len(sends.ledger) == 101


def test_an_item_that_fails_is_reported_and_run_again_next_time(idem: Engine) -> None:
    """The others go on; the report is plain JSON and shows neither items nor keys."""
    sends = Sends(idem, unknown=(TimeoutError,))
    sends.fail = {3: ValueError("4711"), 5: TimeoutError()}
    report = run_batch(sends.send, range(10), workers=2)
    assert report.counts == {"done": 8, "replayed": 0, "failed": 1, "unknown": 1, "left": 0}
    assert not report.complete
    written = json.loads(json.dumps(report.as_dict()))
    assert (written["total"], written["failed"]) == (10, 1)
    assert [(t["index"], t["status"], t["error"]) for t in written["troubles"]] == [
        (3, "failed", "ValueError"),
        (5, "unknown", "TimeoutError"),
    ]
    assert "4711" not in json.dumps(written)
    assert "4711" not in repr(report)
    assert "4711" not in repr(report.items[3])
    assert "item=" not in repr(report.items[1])
    assert "value=" not in repr(report.items[1])
    again = run_batch(sends.send, range(10), workers=2)
    assert again.counts == {"done": 1, "replayed": 8, "failed": 0, "unknown": 1, "left": 0}
    assert Counter(sends.ledger)[5] == 1


def test_under_block_a_failure_is_an_unknown_outcome(idem: Engine) -> None:
    """Nothing runs it again until an operator has looked."""
    sends = Sends(idem, on_abandoned="block")
    sends.fail = {1: RuntimeError()}
    assert run_batch(sends.send, range(3)).counts["unknown"] == 1
    assert run_batch(sends.send, range(3)).counts == {
        "done": 0, "replayed": 2, "failed": 0, "unknown": 1, "left": 0
    }  # fmt: skip


def test_two_items_with_one_key_are_an_error_and_nothing_runs(idem: Engine) -> None:
    """Else the second of two payouts would look paid."""
    sends = Sends(idem)
    with pytest.raises(ConfigurationError, match="items 1 and 3"):
        run_batch(sends.send, [1, 2, 3, 2])
    with pytest.raises(KeyMissing):
        run_batch(sends.send, [1, None])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError):
        run_batch(sends.send, [1], workers=0)
    with pytest.raises(ConfigurationError, match="not decorated"):
        run_batch(len, [[1]])
    assert sends.ledger == []


def test_an_empty_batch_is_complete(idem: Engine) -> None:
    """A night without payouts is no error."""
    report = run_batch(Sends(idem).send, [])
    assert report.complete
    assert str(report) == "0 items: none"


def test_a_batch_takes_a_partial_and_a_bound_method(idem: Engine) -> None:
    """What is bound already comes before the item, or beside it."""
    sends = Sends(idem)
    report = run_batch(partial(sends.send, factor=3), [1, 2])
    assert [item.value for item in report.items] == [3, 6]

    class Account:
        id = "a"

        @idempotent(idem, key="{self.id}-{n}")
        def pay(self, n: int) -> str:
            return f"{self.id}{n}"

    assert [item.value for item in run_batch(Account().pay, [1, 2]).items] == ["a1", "a2"]


def test_a_key_callable_is_asked_once_for_each_item(idem: Engine) -> None:
    """FUN-08: looking for repeated keys does not ask again."""
    asked = []

    def ask(n: int) -> str:
        asked.append(n)
        return str(n)

    run_batch(idempotent(idem, key=ask)(_double), range(5))
    assert sorted(asked) == list(range(5))


def _double(n: int) -> int:
    return 2 * n


def test_a_restarted_batch_waits_for_standing_claims(bench: Bench) -> None:
    """LEA-01: what a killed run had in hand is taken over when its lease is over, after all the rest."""
    sends = Sends(bench.idem, lease=timedelta(seconds=30))
    for n in (0, 1):
        scope, operation, key = key_of(sends.send)(n)
        killed = make_bench(bench.idem.store).idem.begin(
            scope=_sole(scope),
            operation=operation,
            key=key,
            fingerprint=fingerprint({"n": n, "factor": 1}),
            policy=Policy(lease=timedelta(seconds=30)),
        )
        del killed
    started = bench.clock()
    report = run_batch(sends.send, range(5), workers=2)
    assert report.counts["done"] == 5
    assert sorted(sends.ledger[:3]) == [2, 3, 4]  # two workers: in either order
    assert 30 <= bench.clock() - started < 40


def _sole(scope: str) -> Any:
    from idemcore import SINGLE_TENANT

    assert scope == "~single"
    return SINGLE_TENANT


def test_a_store_that_is_away_for_a_moment_fails_no_item() -> None:
    """DEG-02: an item is tried again before it is reported."""
    faulty = Faulty()
    sends = Sends(make_bench(faulty).idem)
    faulty.break_next("reserve")
    assert run_batch(sends.send, range(4), workers=1).complete
    assert sorted(sends.ledger) == [0, 1, 2, 3]


@pytest.mark.parametrize("workers", [1, 4])
def test_a_store_that_stays_away_stops_a_batch(workers: int) -> None:
    """DEG-02: two items in a row have tried for long enough; thousands more would try for an hour."""
    faulty = Faulty()
    sends = Sends(make_bench(faulty).idem)
    down = StoreUnavailable("down", retry_after=0.001)
    faulty.break_next("reserve", times=500, error=down)
    report = run_batch(sends.send, range(100), workers=workers)
    assert sends.ledger == []
    assert 2 <= report.counts["failed"] <= 1 + workers
    assert report.counts["left"] == 100 - report.counts["failed"]
    assert {type(item.error) for item in report.items if item.status == "failed"} == {StoreUnavailable}


def test_one_item_that_the_store_does_not_answer_for_stops_nothing() -> None:
    """Its record may be locked by somebody; the others have their turn, night after night."""
    faulty = Faulty()
    sends = Sends(make_bench(faulty).idem)
    down = StoreUnavailable("locked", retry_after=0.001)
    faulty.break_next("reserve", times=5, error=down)
    report = run_batch(sends.send, range(4), workers=1)
    assert [item.status for item in report.items] == ["failed", "done", "done", "done"]


class Declined(Exception):
    pass


def test_a_kept_failure_is_final_and_a_batch_with_nothing_left_to_run_is_complete(idem: Engine) -> None:
    """A monitor tells "declined, finished" from "crashed, run it again"; a later run says the same."""
    sends = Sends(idem, keep=(Declined,))
    sends.fail = {1: Declined(), 2: ValueError(), 3: Declined()}
    first = run_batch(sends.send, range(5), workers=1)
    assert not first.complete
    assert [trouble["final"] for trouble in first.as_dict()["troubles"]] == [True, False, True]
    assert str(first) == "5 items: 2 done, 3 failed, of the failed 2 final"
    again = run_batch(sends.send, range(5), workers=1, max_failures=1)  # a decline is no failing provider
    assert again.counts == {"done": 1, "replayed": 2, "failed": 2, "unknown": 0, "left": 0}
    assert again.complete
    assert again.as_dict()["complete"]
    assert sends.ledger == [0, 1, 2, 3, 4, 2]


def test_a_failure_that_the_function_released_is_not_final(idem: Engine) -> None:
    """The record decides, not the class that was raised."""

    @idempotent(idem, key="{n}", keep=(Declined,))
    def send(n: int) -> None:
        current_attempt().release()
        raise Declined

    report = run_batch(send, [1])
    assert not report.items[0].final
    assert not report.complete


def test_a_batch_that_waits_for_an_item_is_not_refused_over_and_over(bench: Bench) -> None:
    """It asks twice a second for as long as the lease stands, and says so in no event."""
    sends = Sends(bench.idem)
    scope, operation, key = key_of(sends.send)(0)
    standing = make_bench(bench.idem.store).idem.begin(
        scope=_sole(scope), operation=operation, key=key, fingerprint=fingerprint({"n": 0, "factor": 1})
    )
    assert run_batch(sends.send, range(1), workers=1).complete
    assert bench.seen(events.Refused) == []
    del standing


@pytest.mark.parametrize("refused", [InProgress, StoreUnavailable, NotReplayable])
def test_a_refusal_that_the_function_itself_raises_is_its_failure(
    idem: Engine, refused: type[IdempotencyError]
) -> None:
    """A nested call was refused: the item ran once, it failed, and the batch does not take it for its own."""
    ledger: list[int] = []

    @idempotent(idem, key="{n}", namespace="nests")
    def nest(n: int) -> int:
        ledger.append(n)
        if len(ledger) == 1:
            raise refused("of the nested call")
        return n

    report = run_batch(nest, [1], workers=1)
    assert ledger == [1]
    assert report.items[0].status == "failed"
    assert isinstance(report.items[0].error, refused)


@pytest.mark.parametrize("around", [False, True], ids=["its own run", "a run around its own"])
def test_a_batch_does_not_wait_for_the_run_that_it_comes_out_of(around: bool) -> None:
    """LEA-04: the item has failed at once; a wait would end with `max_hold`, and a second run."""
    clock = FakeClock()
    refusals: list[events.Event] = []

    def observe(event: events.Event) -> None:
        if isinstance(event, events.Refused):
            refusals.append(event)
            clock.advance(1)  # whoever asks again and again gets to the end of the claim

    idem = Engine(MemoryStore(clock=clock), observers=[observe], monotonic=clock, sleep=clock.sleep)
    ledger: list[str] = []
    reports: list[Report[str, str]] = []

    @idempotent(idem, key="{n}", lease=timedelta(seconds=5), max_hold=timedelta(seconds=5), namespace="nests")
    def nest(n: str) -> str:
        ledger.append(n)
        if around and n == "a":
            run_batch(nest, ["b"], workers=1)
        elif n != "c" and len(ledger) < 4:
            reports.append(run_batch(nest, ["a", "c"], workers=1))
        return n

    assert run_batch(nest, ["a"], workers=1).complete
    assert ledger == (["a", "b", "c"] if around else ["a", "c"])
    assert len(refusals) == 1
    (report,) = reports
    assert [item.status for item in report.items] == ["failed", "done"]
    refused = report.items[0].error
    assert isinstance(refused, InProgress)
    assert refused.for_itself
    assert "comes out of a run" in str(refused)


def test_a_refusal_that_the_function_raises_is_in_doubt_where_its_record_is(idem: Engine) -> None:
    """Under block the record says unknown, whatever the class of the error; unless the function released."""
    ledger: list[int] = []

    @idempotent(idem, key="{n}", namespace="nests", on_abandoned="block")
    def nest(n: int) -> int:
        ledger.append(n)
        if n == 2:
            current_attempt().release()
        raise InProgress("of the nested call")

    report = run_batch(nest, [1, 2], workers=1)
    assert ledger == [1, 2]
    assert [item.status for item in report.items] == ["unknown", "failed"]


def test_too_many_failures_stop_a_batch(idem: Engine) -> None:
    """When the provider is down, the rest is left as it is."""
    sends = Sends(idem)
    sends.fail = {n: ConnectionError() for n in range(100)}
    report = run_batch(sends.send, range(100), workers=2, max_failures=5)
    assert 5 <= report.counts["failed"] <= 6
    assert report.counts["left"] == 100 - report.counts["failed"]


def test_a_base_exception_in_the_function_stops_the_batch_and_passes(
    idem: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """LEA-07: with every begun item settled."""
    sends = Sends(idem)
    sends.fail = {2: SystemExit(3)}
    with pytest.raises(SystemExit) as caught:
        run_batch(sends.send, range(1000), workers=2)
    assert caught.value.code == 3
    assert "batch stopped by SystemExit with every begun item settled: 1,000 items: " in caplog.text
    assert len(sends.ledger) < 1000
    assert {found.record.state.value for found in idem.store.find(limit=1000)} <= {"completed", "released"}  # type: ignore[union-attr]


def test_several_batches_at_once_share_the_work(idem: Engine) -> None:
    """Two of them on one store: each item is run by one and replayed by the other."""
    sends = Sends(idem)
    reports: list[Any] = []
    batches = [
        threading.Thread(target=lambda: reports.append(run_batch(sends.send, range(200)))) for _ in range(3)
    ]
    for thread in batches:
        thread.start()
    for thread in batches:
        thread.join()
    assert sorted(sends.ledger) == list(range(200))
    assert all(report.complete for report in reports)
    assert sum(report.counts["done"] for report in reports) == 200


def test_progress_is_shown_on_standard_error_by_choice(
    idem: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default only on a terminal."""
    sends = Sends(idem)
    run_batch(sends.send, range(3))
    assert capsys.readouterr().err == ""
    run_batch(sends.send, range(4), progress=True)
    shown = capsys.readouterr()
    assert "4/4 1 done, 3 replayed" in shown.err
    assert shown.out == ""


SCRIPT = """
import signal, sys, threading
from idemcore import Engine
from idemcore_function import idempotent, run_batch

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it from the start
idem = Engine(f"sqlite:///{sys.argv[1]}")
idem.create_schema()
gate = threading.Event()

@idempotent(idem, key="{n}", namespace="sends")
def send(n: int) -> int:
    with open(sys.argv[2], "a") as ledger:
        ledger.write(f"{n}\\n")
    if n == 5:
        print("under way", flush=True)
    if n >= 5:
        gate.wait(0.2)
    return n

print(run_batch(send, range(1_000), workers=3))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_leaves_every_begun_item_settled(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Ctrl-C and SIGTERM: nothing waits for a lease, and a second run does the rest once."""
    script = tmp_path / "sends.py"
    script.write_text(SCRIPT)
    database, ledger = tmp_path / "sends.db", tmp_path / "ledger"
    command = [sys.executable, str(script), str(database), str(ledger)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as batch:
        assert batch.stdout is not None
        assert batch.stdout.readline() == "under way\n"
        os.kill(batch.pid, number)
        _, told = batch.communicate(timeout=60)
    assert batch.returncode == code
    name = "KeyboardInterrupt" if number is signal.SIGINT else "SystemExit"
    assert f"batch stopped by {name} with every begun item settled: 1,000 items: " in told
    with Engine(f"sqlite:///{database}") as idem:
        states = Counter(found.record.state.value for found in idem.store.find(limit=2_000))  # type: ignore[union-attr]
    begun = ledger.read_text().split()
    assert states == {"completed": len(begun)}
    assert len(begun) < 1_000


def test_a_worker_that_comes_too_late_is_not_taken_for_one_that_has_ended(idem: Engine) -> None:
    """It enters and leaves while the batch is stopped, and another has an item in hand: that is waited for."""
    begun, gate = threading.Event(), threading.Event()

    @idempotent(idem, key="{n}", namespace="sends")
    def send(n: int) -> int:
        begun.set()
        assert gate.wait(60)
        return n

    operation, first, named = operation_of(send)
    item: Item[int, int] = Item(0, 7, "digest")
    workload = Workload(operation, first, named, [(item, operation.read((7,), {}))], None)
    late = threading.Thread(target=workload.work)

    class Entered(list[None]):
        """How many have entered: at the first look one, beside whom the late one then comes and goes."""

        def __len__(self) -> int:
            counted = super().__len__()
            if late.ident is None:
                late.start()
                late.join()
            else:
                gate.set()
            return counted

    workload._entered = Entered()
    worker = threading.Thread(target=workload.work)
    worker.start()
    assert begun.wait(60)
    workload.settle()
    status = item.status
    gate.set()
    worker.join()
    assert status == "done"


SLOW_SCRIPT = """
import signal, sys
from idemcore import Engine
from idemcore_function import idempotent, run_batch

signal.signal(signal.SIGINT, signal.default_int_handler)
idem = Engine(f"sqlite:///{sys.argv[1]}")
idem.create_schema()

@idempotent(idem, key="{n}", namespace="sends")
def send(n: int) -> int:
    print("under way", flush=True)
    sys.stdin.readline()
    print("over", flush=True)
    return n

run_batch(send, range(3), workers=1)
"""


@pytest.mark.parametrize(("number", "times"), [(signal.SIGTERM, 1), (signal.SIGINT, 1), (signal.SIGINT, 2)])
def test_a_signal_waits_for_the_worker_that_is_waited_for(
    tmp_path: Path, number: signal.Signals, times: int
) -> None:
    """A join that a signal interrupts takes a thread for ended that runs on, so no join is asked."""
    script, database = tmp_path / "sends.py", tmp_path / "sends.db"
    script.write_text(SLOW_SCRIPT)
    command = [sys.executable, str(script), str(database)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as batch:
        assert batch.stdout is not None
        assert batch.stdout.readline() == "under way\n"
        for _ in range(times):
            time.sleep(0.2)  # into the wait for the worker
            os.kill(batch.pid, number)
        time.sleep(0.2)
        told, _ = batch.communicate("go on\n", timeout=60)
    assert told == "over\n"
    with Engine(f"sqlite:///{database}") as idem:
        states = [found.record.state.value for found in idem.store.find(limit=9)]  # type: ignore[union-attr]
    assert states == ["completed"]


@pytest.mark.parametrize("key", ["{invoice[id]}", lambda invoice: invoice["id"], ALL_ARGUMENTS])
def test_an_item_that_changed_after_it_was_read_is_not_run(idem: Engine, key: Any) -> None:
    """A generator that yields one object again and again: the last is charged, none under a wrong key."""
    charged: list[str] = []

    def charge(invoice: dict[str, str]) -> str:
        charged.append(invoice["id"])
        return invoice["id"]

    def invoices() -> Iterator[dict[str, str]]:
        invoice: dict[str, str] = {}
        for n in range(3):
            invoice["id"] = f"i-{n}"
            yield invoice

    report = run_batch(idempotent(idem, key=key)(charge), invoices())
    assert charged == ["i-2"]
    assert [item.status for item in report.items] == ["failed", "failed", "done"]
    assert isinstance(report.items[0].error, ConfigurationError)
    assert "changed after it was read" in str(report.items[0].error)


def test_what_the_key_is_made_of_is_read_again_where_it_is_excluded(idem: Engine) -> None:
    """The fingerprint alone would not show that it changed."""
    charged: list[str] = []

    @idempotent(idem, key="{invoice[id]}", exclude={"invoice"})
    def charge(invoice: dict[str, str]) -> None:
        charged.append(invoice["id"])

    def invoices() -> Iterator[dict[str, str]]:
        invoice: dict[str, str] = {}
        for n in range(2):
            invoice["id"] = f"i-{n}"
            yield invoice

    assert run_batch(charge, invoices()).counts["failed"] == 1
    assert charged == ["i-1"]


def test_a_kept_none_is_told_from_an_answer_that_is_not_kept(idem: Engine) -> None:
    """Both are done and have no value; the error says which is which, and is no trouble of the batch."""

    @idempotent(idem, key="{n}", namespace="settles")
    def settle(n: int) -> None:
        if n == 1:
            current_attempt().tombstone("too_large")

    first = run_batch(settle, [0, 1], workers=1)
    again = run_batch(settle, [0, 1], workers=1)
    assert [item.status for item in again.items] == ["replayed", "replayed"]
    assert [item.value for item in again.items] == [None, None]
    assert [type(item.error).__name__ for item in again.items] == ["NoneType", "NotReplayable"]
    assert first.complete
    assert again.complete
    assert again.as_dict()["troubles"] == []


def test_a_batch_is_typed_by_its_function(idem: Engine) -> None:
    """The values of the report are what the function returns."""
    report = run_batch(Sends(idem).send, [1, 2], progress=False)
    assert sum(item.value or 0 for item in report.items) == 3


def test_an_item_is_one_argument_and_the_error_says_so() -> None:
    """A function of two arguments given tuples: told how to call it, and nothing runs."""
    ran: list[str] = []

    @idempotent(Engine("memory://"), key="{payout}", namespace="n")
    def send(payout: str, amount: int) -> str:
        ran.append(payout)
        return payout

    with pytest.raises(ConfigurationError, match="one argument"):
        run_batch(send, [("p-1", 5), ("p-2", 6)])  # type: ignore[arg-type]
    assert ran == []


def test_a_batch_gets_its_records_written_before_it_reports() -> None:
    """The store failed when an item ended, and is back when the batch has: nothing is left to run again."""
    store = Faulty()
    sends = Sends(make_bench(store).idem)
    store.break_next("complete", times=2)
    report = run_batch(sends.send, range(3), workers=1, progress=False)
    assert report.complete
    assert report.as_dict()["troubles"] == []
    assert run_batch(sends.send, range(3)).counts["replayed"] == 3


@pytest.mark.parametrize("ends", ["returns", "raises what is kept", "raises what is in doubt"])
def test_an_item_without_a_record_keeps_a_batch_incomplete(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ran, and a second run of the batch may run it again: so says the report, in all of its ways."""
    monkeypatch.setattr(workload, "_RECORDS_WITHIN", 0.0)
    store = Faulty()
    sends = Sends(make_bench(store).idem, keep=(Declined,), unknown=(TimeoutError,))
    if ends != "returns":
        sends.fail = {0: Declined() if ends == "raises what is kept" else TimeoutError()}
    for verb in ("complete", "release"):
        store.break_next(verb, times=3)
    report = run_batch(sends.send, [0], workers=1, progress=False)
    assert [item.unrecorded for item in report.items] == [True]
    assert not report.complete
    [trouble] = report.as_dict()["troubles"]
    assert trouble["unrecorded"]
    assert (trouble["error"] is None) == (ends == "returns")
    assert str(report).endswith("; 1 without a record, which may run again")


def test_an_item_that_failed_and_may_run_again_needs_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its claim could not be given up: the end of the lease frees it, and the report says failed."""
    monkeypatch.setattr(workload, "_RECORDS_WITHIN", 0.0)
    store = Faulty()
    sends = Sends(make_bench(store).idem)
    sends.fail = {0: ConnectionError()}
    store.break_next("release", times=3)
    [item] = run_batch(sends.send, [0], workers=1, progress=False).items
    assert (item.status, item.unrecorded) == ("failed", False)


def test_a_batch_that_ends_with_a_store_that_hangs_waits_for_one_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes its time limit: the wait is bounded, and what was not asked for counts as unrecorded."""
    monkeypatch.setattr(workload, "_RECORDS_WITHIN", 0.0)
    store = Faulty()
    sends = Sends(make_bench(store).idem)
    store.break_next("complete", times=9)
    report = run_batch(sends.send, range(3), workers=1, progress=False)
    assert [item.unrecorded for item in report.items] == [True] * 3
    assert store.calls.count("get") == 1


def test_items_that_wait_for_an_operator_starve_no_batch(idem: Engine) -> None:
    """They were refused and called nobody, so they are no sign of a provider that is down."""
    sends = Sends(idem, unknown=(TimeoutError,))
    sends.fail = {n: TimeoutError() for n in range(5)}
    assert run_batch(sends.send, range(5), workers=1).counts["unknown"] == 5
    again = run_batch(sends.send, range(20), workers=1, max_failures=1)
    assert again.counts == {"done": 15, "replayed": 0, "failed": 0, "unknown": 5, "left": 0}
    sends.fail = {n: TimeoutError() for n in range(20, 30)}
    stopped = run_batch(sends.send, range(20, 30), workers=1, max_failures=2)  # in doubt since this batch
    assert (stopped.counts["unknown"], stopped.counts["left"]) == (2, 8)


def test_a_kept_result_that_its_type_reads_no_more_is_done(idem: Engine) -> None:
    """A deploy renamed a field: the item is not run again, stops no batch, and is shown as a trouble."""
    runs = []

    class Before(BaseModel):
        reference: str

    class After(BaseModel):
        bank_reference: str

    def deployed(receipt: Any) -> Any:
        @idempotent(Engine(idem.store), key="{n}", namespace="charges")
        def charge(n: int) -> receipt:
            runs.append(n)
            return receipt(**dict.fromkeys(receipt.model_fields, f"R-{n}"))

        return charge

    assert run_batch(deployed(Before), [0, 1], workers=1).complete
    report = run_batch(deployed(After), [0, 1, 2], workers=1, max_failures=1)
    assert runs == [0, 1, 2]
    assert [item.status for item in report.items] == ["replayed", "replayed", "done"]
    assert [item.value for item in report.items[:2]] == [None, None]
    assert report.complete
    assert [trouble["error"] for trouble in report.as_dict()["troubles"]] == ["RecordUnreadable"] * 2
    with pytest.raises(RecordUnreadable, match=r"is done, and its kept result does not fit .* Do not forget"):
        raise report.items[0].error or AssertionError


@pytest.mark.parametrize("change", ["default", "dropped", "renamed"])
def test_a_type_that_reads_what_it_wrote_before_replays_it(idem: Engine, change: str) -> None:
    """The three changes that the page on functions names, each with what it takes."""

    class Before(BaseModel):
        reference: str

    class Default(Before):
        note: str = "none"

    class Dropped(BaseModel):
        pass

    class Renamed(BaseModel):
        bank_reference: str

        @model_validator(mode="before")
        @classmethod
        def of_before(cls, kept: dict[str, str]) -> dict[str, str]:
            return {"bank_reference": kept["reference"]} if "reference" in kept else kept

    def deployed(receipt: Any) -> Any:
        @idempotent(Engine(idem.store), key="{n}", namespace="charges")
        def charge(n: int) -> receipt:
            return Before(reference=f"R-{n}")

        return charge

    after = {"default": Default, "dropped": Dropped, "renamed": Renamed}[change]
    run_batch(deployed(Before), [0])
    [item] = run_batch(deployed(after), [0]).items
    assert item.status == "replayed"
    want = {
        "default": {"reference": "R-0", "note": "none"},
        "dropped": {},
        "renamed": {"bank_reference": "R-0"},
    }
    assert isinstance(item.value, after)
    assert item.value.model_dump() == want[change]
