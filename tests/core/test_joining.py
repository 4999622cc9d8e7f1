"""What an attempt does around a transaction of the caller's, over a store whose transactions a test ends."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Literal

import pytest

from idemcore import (
    AlreadyCommitted,
    Attempt,
    ConfigurationError,
    Engine,
    InProgress,
    LeaseLost,
    MemoryStore,
    NotReplayable,
    OutcomeUnknown,
    Policy,
    Replay,
    events,
    identify,
)
from idemcore.record import Answer, Claim, Record, State
from idemcore.recordings import FIRST_LOOK
from idemcore.stores.base import FAILED_AFTER_COMMIT, CallersTransaction, JoiningStore, NotJoined
from tests.core.engine_fixtures import BLOCK, TEN_EUROS, Bench, Faulty, make_bench

IDENTITY = identify("t", "charge", "k")
POLICY = Policy(lease=timedelta(seconds=6), max_hold=timedelta(seconds=60))


class Transaction:
    """Open until the test ends it."""

    def __init__(self, says: NotJoined | None = None) -> None:
        self.is_active = True
        self.says = says
        self.mark: Callable[[], None] = lambda: None

    def commit(self) -> None:
        self.mark()
        self.is_active = False

    def rollback(self) -> None:
        self.is_active = False


class JoinableMemory(Faulty):
    """Memory whose records are locked by an open transaction: a verb that would wait for it fails the test."""

    inner: MemoryStore
    open: Transaction | None = None

    def join(
        self, place: Transaction, claim: Claim, joined: CallersTransaction | None = None
    ) -> CallersTransaction | NotJoined:
        assert joined is None or joined.is_active
        if place.says is not None:
            return place.says
        self.open = place

        def mark() -> None:
            entry = self.inner._shelf.entries[claim.identity]
            entry.state, entry.hold = State.COMMITTED, False

        place.mark = mark
        return place

    def __getattr__(self, verb: str) -> Callable[..., object]:
        if verb in ("complete", "release", "renew") and self.open is not None:
            assert not self.open.is_active, f"{verb} waits for the caller's own transaction"
        return super().__getattr__(verb)


@pytest.fixture
def store() -> JoinableMemory:
    return JoinableMemory()


@pytest.fixture
def bench(store: JoinableMemory) -> Bench:
    return make_bench(store, POLICY)


@pytest.fixture
def transaction() -> Transaction:
    return Transaction()


def pass_time(bench: Bench, seconds: float) -> None:
    for _ in range(round(seconds * 4)):
        bench.clock.advance(0.25)
        bench.idem.keeper.step()


def state(bench: Bench) -> str:
    record = bench.idem.get(IDENTITY)
    return getattr(record, "state", State.RELEASED).value if record is not None else "gone"


def token_of(bench: Bench) -> bytes:
    record = bench.idem.get(IDENTITY)
    assert isinstance(record, Record)
    return record.token


def fail_after_join(bench: Bench, transaction: Transaction, end: Callable[[], None] = lambda: None) -> None:
    with bench.attempt() as attempt:
        attempt.join(transaction)
        end()
        raise ZeroDivisionError


def test_the_fake_store_is_one_that_joins(store: JoinableMemory) -> None:
    """Else the tests below would test nothing."""
    assert isinstance(store, JoiningStore)
    assert not isinstance(MemoryStore(), JoiningStore)


def test_committed_then_completed_is_replayed(bench: Bench, transaction: Transaction) -> None:
    """The ordinary way: join, commit, complete."""
    with bench.attempt() as attempt:
        attempt.join(transaction)
        transaction.commit()
        assert attempt.complete(b"receipt") is None
    assert bench.replay().outcome.body == b"receipt"


def test_a_retry_is_told_what_can_still_come(bench: Bench, transaction: Transaction) -> None:
    """OUT-02: to wait while the run's lease stands; after it to look the result up, not to try again."""
    attempt = bench.attempt()
    attempt.join(transaction)
    transaction.commit()
    with pytest.raises(InProgress) as waiting:
        bench.begin()
    assert waiting.value.retry_after <= 6
    bench.clock.advance(6)
    with pytest.raises(NotReplayable, match=r"Look the result up") as told:
        bench.begin()
    assert (told.value.reason, told.value.final) == ("answer_pending", False)
    assert "later" not in str(told.value)
    attempt.tombstone("too_large")
    with pytest.raises(NotReplayable) as at_last:
        bench.begin()
    assert (at_last.value.reason, at_last.value.final) == ("too_large", True)


@pytest.mark.parametrize("verdict", ["done", Answer("returned", b"", b"order 7")], ids=["done", "answer"])
def test_an_operator_ends_what_died_after_its_commit(
    bench: Bench, transaction: Transaction, verdict: Literal["done"] | Answer
) -> None:
    """Not while its lease stands; then retries get the answer or hear for good that there is none, and a run
    that lives after all changes nothing.
    """
    late = bench.attempt()
    late.join(transaction)
    transaction.commit()
    seen = token_of(bench)
    assert not bench.idem.resolve(IDENTITY, seen, verdict)
    bench.clock.advance(6)
    assert bench.idem.resolve(IDENTITY, seen, verdict)
    assert len(bench.seen(events.Resolved)) == 1
    if verdict == "done":
        with pytest.raises(NotReplayable) as told:
            bench.begin()
        assert (told.value.reason, told.value.final) == ("resolved_as_done", True)
    else:
        assert bench.replay().outcome.body == b"order 7"
    late.complete(b"order 8")
    assert len(bench.seen(events.LateFinish)) == 1
    assert state(bench) == ("tombstone" if verdict == "done" else "completed")


def test_nobody_can_say_that_committed_work_was_not_done(bench: Bench, transaction: Transaction) -> None:
    """Lease standing or over: an error that says what to do, no event, and a record as it was."""
    attempt = bench.attempt()
    attempt.join(transaction)
    transaction.commit()
    seen = token_of(bench)
    for _ in range(2):
        with pytest.raises(AlreadyCommitted, match="Say 'done'"):
            bench.idem.resolve(IDENTITY, seen, "not_done")
        assert (state(bench), token_of(bench)) == ("committed", seen)
        bench.clock.advance(6)
    assert not bench.idem.resolve(IDENTITY, b"another token", "not_done")
    assert bench.seen(events.Resolved) == []
    attempt.complete(b"")


def test_memory_says_what_to_use_instead() -> None:
    """Nothing in memory shares a database's fate."""
    attempt = make_bench().attempt()
    with pytest.raises(ConfigurationError, match=r"SQLAlchemyStore.*child_key"):
        attempt.join(Transaction())
    attempt.release()


@pytest.mark.parametrize(
    ("says", "error"), [("lost", LeaseLost), ("already", AlreadyCommitted)], ids=["lost", "already"]
)
def test_a_refused_join_is_an_error(
    bench: Bench, says: NotJoined, error: type[LeaseLost | AlreadyCommitted]
) -> None:
    """It leaves the caller's transaction, which rolls their rows back; the key is shown by its digest only."""
    attempt = bench.attempt()
    with pytest.raises(error) as caught:
        attempt.join(Transaction(says))
    assert caught.value.key_digest == attempt.identity.digest
    assert not attempt.is_held
    attempt.complete(b"")


def test_completing_before_the_commit_is_refused_and_loses_nothing(
    bench: Bench, transaction: Transaction
) -> None:
    """It would wait for itself; after the commit the same call succeeds."""
    attempt = bench.attempt()
    attempt.join(transaction)
    for end in (lambda: attempt.complete(b"x"), lambda: attempt.tombstone("y"), attempt.renew):
        with pytest.raises(ConfigurationError, match="still open"):
            end()
    assert not attempt.settled
    transaction.commit()
    attempt.renew()
    attempt.complete(b"receipt")
    assert bench.replay().outcome.body == b"receipt"


def test_after_a_rollback_the_attempt_goes_on(bench: Bench, transaction: Transaction) -> None:
    """The mark is gone with the rows: a second transaction joins, commits, and is completed."""
    attempt = bench.attempt()
    attempt.join(transaction)
    transaction.rollback()
    second = Transaction()
    attempt.join(second)
    second.commit()
    attempt.complete(b"receipt")
    assert bench.replay().outcome.body == b"receipt"


def test_an_exception_after_the_rollback_releases(bench: Bench, transaction: Transaction) -> None:
    """The usual nesting: the transaction is rolled back inside of the attempt, so nothing was done."""
    with pytest.raises(ZeroDivisionError):
        fail_after_join(bench, transaction, transaction.rollback)
    assert bench.attempt().number == 2


def test_an_exception_after_the_commit_leaves_a_tombstone(bench: Bench, transaction: Transaction) -> None:
    """What was committed is done, whatever the handler came to."""
    with pytest.raises(ZeroDivisionError):
        fail_after_join(bench, transaction, transaction.commit)
    with pytest.raises(NotReplayable, match=FAILED_AFTER_COMMIT):
        bench.begin()


class TestNotJoinedAgain:
    """A retry loop with one join before it: the second round's rows are in no transaction with the record."""

    @pytest.fixture
    def attempt(self, bench: Bench, transaction: Transaction) -> Attempt:
        attempt = bench.attempt()
        attempt.join(transaction)
        transaction.rollback()
        return attempt

    def test_completing_is_announced_and_keeps_the_answer(self, bench: Bench, attempt: Attempt) -> None:
        """OUT-02: a kill before it would have left an order that comes a second time. The work is done."""
        attempt.complete(b"receipt")
        assert [event.level for event in bench.seen(events.MarkRolledBack)] == [logging.ERROR]
        assert bench.replay().outcome.body == b"receipt"

    def test_a_second_join_is_what_is_asked_for(self, bench: Bench, attempt: Attempt) -> None:
        """Then the rows and the mark share their fate again."""
        again = Transaction()
        attempt.join(again)
        again.commit()
        attempt.complete(b"receipt")
        assert bench.seen(events.MarkRolledBack) == []

    def test_a_commit_that_looked_failed_is_no_rollback(self, bench: Bench, transaction: Transaction) -> None:
        """OUT-03: it had arrived, so the record has its mark, whatever the program did then."""
        attempt = bench.attempt()
        attempt.join(transaction)
        transaction.commit()
        transaction.rollback()
        attempt.complete(b"receipt")
        assert bench.seen(events.MarkRolledBack) == []

    @pytest.mark.parametrize(
        "end",
        [lambda attempt: attempt.complete(b"declined", refused=True), lambda attempt: attempt.refuse()],
        ids=["a kept refusal", "a refusal"],
    )
    def test_a_refusal_rolls_back_rightly(
        self, bench: Bench, attempt: Attempt, end: Callable[[Attempt], object]
    ) -> None:
        """Nothing was done, and nothing was to be marked."""
        end(attempt)
        assert bench.seen(events.MarkRolledBack) == []

    def test_a_kept_exception_rolls_back_rightly(self, store: JoinableMemory, transaction: Transaction) -> None:
        """It left the transaction, which rolled back."""
        bench = make_bench(store, Policy(keep=(ZeroDivisionError,)))
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction, transaction.rollback)
        assert bench.replay().outcome.kind == "raised"
        assert bench.seen(events.MarkRolledBack) == []

    def test_a_store_that_is_away_is_told_of_by_the_recording(
        self, bench: Bench, store: JoinableMemory, attempt: Attempt
    ) -> None:
        """The look is for the event alone: its failure stops nothing."""
        store.break_next("get")
        attempt.complete(b"receipt")
        assert bench.replay().outcome.body == b"receipt"


class TestTheWrongNesting:
    """The transaction ends outside of the attempt: settled once it has ended, and nobody waits for it."""

    def test_an_exception_is_settled_after_the_rollback(self, bench: Bench, transaction: Transaction) -> None:
        """The caller's own exception comes through, and the key is free a moment after the rollback."""
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        pass_time(bench, 20)
        transaction.rollback()
        pass_time(bench, 1)
        assert bench.attempt().number == 2
        assert [type(event) for event in bench.events if "Failed" in type(event).__name__] == []

    def test_a_retry_at_once_finds_the_key_free(self, bench: Bench, transaction: Transaction) -> None:
        """Whoever comes before the thread of the engine settles it, on the way in."""
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        with pytest.raises(InProgress):
            bench.begin()
        transaction.rollback()
        assert bench.attempt().number == 2

    def test_the_end_of_the_transaction_is_looked_for_at_once(
        self, bench: Bench, transaction: Transaction
    ) -> None:
        """A teardown rolls back in the next moment; a retry may reach another process."""
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        transaction.rollback()
        bench.clock.advance(0.003)
        bench.idem.keeper.step()
        assert state(bench) == "released"

    def test_an_exception_is_settled_after_the_commit(self, bench: Bench, transaction: Transaction) -> None:
        """It was caught in between, and the rows were committed: they are there, so nothing runs again."""
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        transaction.commit()
        pass_time(bench, 1)
        with pytest.raises(NotReplayable, match=FAILED_AFTER_COMMIT):
            bench.begin()

    def test_under_block_it_is_unknown(self, store: JoinableMemory, transaction: Transaction) -> None:
        """An exception says nothing of whether the work was done, there as ever."""
        bench = make_bench(store, BLOCK)
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        transaction.rollback()
        pass_time(bench, 1)
        with pytest.raises(OutcomeUnknown):
            bench.begin()

    def test_a_kept_exception_is_kept_after_the_end(
        self, store: JoinableMemory, transaction: Transaction
    ) -> None:
        """Its replays raise it, and whoever raised it is not told something else instead."""
        bench = make_bench(store, Policy(keep=(ZeroDivisionError,)))
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        transaction.rollback()
        pass_time(bench, 1)
        assert bench.replay().outcome.kind == "raised"

    @pytest.mark.parametrize(("commits", "becomes"), [(True, "tombstone"), (False, "released")])
    def test_an_unsettled_attempt_stands_or_falls_with_it(
        self, bench: Bench, transaction: Transaction, commits: bool, becomes: str
    ) -> None:
        """Forgotten complete(): an error says so, and the record tells what became of the rows."""
        with pytest.raises(ConfigurationError, match="commit inside"), bench.attempt() as attempt:
            attempt.join(transaction)
        (transaction.commit if commits else transaction.rollback)()
        pass_time(bench, 1)
        assert state(bench) == becomes

    def test_completing_inside_is_refused_and_released(self, bench: Bench, transaction: Transaction) -> None:
        """The refusal leaves both blocks: the rows roll back, the key is free, the retry runs."""
        attempt = bench.attempt()
        attempt.join(transaction)
        with pytest.raises(ConfigurationError, match="commit it first"), attempt:
            attempt.complete(b"too early")
        transaction.rollback()
        pass_time(bench, 1)
        assert bench.attempt().number == 2

    def test_a_transaction_that_never_ends_is_given_up(self, bench: Bench, transaction: Transaction) -> None:
        """After max_hold the keeper lets go; an outcome that is lost by it is announced."""
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        pass_time(bench, 90)
        assert bench.idem.keeper._recordings.dues() == []

    def test_one_that_is_forgotten_is_not_kept_open(self, bench: Bench) -> None:
        """Its owner dropped it without an end: it is collected as it would be without join, and settled."""
        forgotten = Transaction()
        seen = weakref.ref(forgotten)
        attempt = bench.attempt()
        attempt.join(forgotten)
        attempt.fail(ZeroDivisionError())
        pass_time(bench, 1)
        assert attempt.is_held
        bench.idem.store.open = None  # type: ignore[attr-defined] # the fake store's own hold on it
        del forgotten
        gc.collect()
        assert seen() is None
        pass_time(bench, 1)
        assert bench.attempt().number == 2

    def test_the_end_of_the_program_does_not_wait_for_it(self, bench: Bench, transaction: Transaction) -> None:
        """The process is going, and its connections with it."""
        with pytest.raises(ZeroDivisionError):
            fail_after_join(bench, transaction)
        bench.idem.close()
        assert bench.idem.keeper._recordings.dues() == []


def test_an_open_transaction_holds_up_no_other_renewal(
    bench: Bench, store: JoinableMemory, transaction: Transaction
) -> None:
    """LEA-05: its own claim is passed over until it ends; then both are renewed, and nothing was reported."""
    joined, other = bench.attempt(key="joined"), bench.attempt(key="other")
    store.open = None
    joined.join(transaction)
    renewed: list[str] = []
    store.inner.renew = _noting(store.inner.renew, renewed)
    store.open = None  # verbs on the other record are let through; the list tells whose they were
    pass_time(bench, 20)
    assert set(renewed) == {"other"}
    transaction.commit()
    pass_time(bench, 2)
    assert set(renewed) == {"other", "joined"}
    assert bench.seen(events.RenewalFailed) == bench.seen(events.LeaseEnded) == []
    with pytest.raises(InProgress):
        bench.begin(key="joined")
    joined.complete(b"")
    other.complete(b"")


def _noting(renew: Callable[[Claim], float | None], keys: list[str]) -> Callable[[Claim], float | None]:
    def noted(claim: Claim) -> float | None:
        keys.append(claim.identity.key)
        return renew(claim)

    return noted


def test_a_settled_attempt_joins_nothing(bench: Bench, transaction: Transaction) -> None:
    """The record has its outcome; more rows under it would be another operation."""
    attempt = bench.attempt()
    attempt.complete(b"")
    with pytest.raises(ConfigurationError, match="settled already"):
        attempt.join(transaction)
    assert isinstance(bench.begin(), Replay)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_joins_nothing(bench: Bench, transaction: Transaction) -> None:
    """The claim is the parent's, and so is its transaction."""
    attempt = bench.attempt()
    attempt._process = object()  # as a child sees it
    with pytest.raises(ConfigurationError, match="parent"):
        attempt.join(transaction)


def test_an_observer_may_call_the_engine_while_joined_ends_are_settled() -> None:
    """It asked for another end that was to be settled, and waited for the lock that its own teller held."""
    store = JoinableMemory()
    store.inner = MemoryStore()
    found: list[object] = []

    def asks(event: events.Event) -> None:
        if isinstance(event, events.RecordingRecovered) and not found:
            found.append(None)
            found[0] = idem.begin(scope="t", operation="charge", key="b", fingerprint=TEN_EUROS)

    idem = Engine(store, policy=Policy(keep=(ZeroDivisionError,)), observers=[asks])
    idem.keeper._rouse = lambda: True  # type: ignore[method-assign]  # the test steps it
    transactions = [Transaction(), Transaction()]
    for key, transaction in zip("ab", transactions, strict=True):
        attempt = idem.begin(scope="t", operation="charge", key=key, fingerprint=TEN_EUROS)
        assert isinstance(attempt, Attempt)
        attempt.join(transaction)
        attempt.fail(ZeroDivisionError())
    for transaction in transactions:
        transaction.rollback()
    time.sleep(FIRST_LOOK)
    stepping = threading.Thread(target=idem.keeper.step, daemon=True)
    stepping.start()
    stepping.join(30)
    assert not stepping.is_alive(), "it waits for itself"
    assert isinstance(found[0], Replay)
