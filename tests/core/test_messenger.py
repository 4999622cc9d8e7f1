"""Observers that take their time: no claim, no lock and no end of a program waits for them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from idemcore import Attempt, Engine, MemoryStore, Policy, events, identify, messenger
from idemcore.announcer import Announcer
from idemcore.testing import fresh
from tests.core.engine_fixtures import TEN_EUROS

IDENTITY = identify("t", "charge", "k")
SHORT = Policy(lease=timedelta(seconds=0.05), max_hold=timedelta(seconds=0.05))
LONG = Policy(lease=timedelta(seconds=0.05), max_hold=timedelta(hours=1))


class Hung:
    """An observer that does not come back before the test is over."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.over = threading.Event()
        self.seen: list[events.Event] = []

    def __call__(self, event: events.Event) -> None:
        self.seen.append(event)
        self.asked.set()
        self.over.wait(60)


def in_a_hurry(carrier: messenger.Messenger, act: Callable[[], None]) -> None:
    """Acts in a thread that never waits for an observer, to its end."""

    def hurried() -> None:
        messenger.leave_telling_to(carrier)
        act()

    thread = threading.Thread(target=hurried)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waited for an observer"


@pytest.fixture
def carrier() -> messenger.Messenger:
    return messenger.Messenger()


def say(announcer: Announcer, attempts: range) -> Callable[[], None]:
    def said() -> None:
        for attempt in attempts:
            announcer(events.Started, IDENTITY, attempt)

    return said


def said(observed: list[events.Event]) -> list[int]:
    return [event.attempt for event in observed if isinstance(event, events.Started)]


def told_to_one_that_hangs(carrier: messenger.Messenger) -> tuple[Hung, Announcer]:
    """An observer that is being told the first event, and does not come back from it."""
    hung = Hung()
    announcer = Announcer([hung])
    in_a_hurry(carrier, say(announcer, range(1)))
    assert hung.asked.wait(30)
    return hung, announcer


@pytest.mark.parametrize("way", ["an observer", "a log handler"])
def test_whoever_hangs_while_he_is_told_costs_no_claim(way: str) -> None:
    """A pager that does not answer, or a mail server behind a log handler: the other claims are renewed."""
    hung = Hung()
    store, renewed = MemoryStore(), threading.Event()
    real = store.renew

    def renew(claim: object) -> float | None:
        renewed.set()
        return real(claim)  # type: ignore[arg-type]

    store.renew = renew  # type: ignore[method-assign]

    def pages(event: events.Event) -> None:
        if isinstance(event, events.LeaseEnded):
            hung(event)

    class Mails(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hung(events.Event())

    handler = Mails(level=logging.ERROR)
    log = logging.getLogger("idemcore")
    idem = Engine(store, observers=[pages]) if way == "an observer" else Engine(store)
    try:
        if way == "a log handler":
            log.addHandler(handler)
        long = idem.begin(scope="t", operation="o", key="long", fingerprint=TEN_EUROS, policy=LONG)
        assert isinstance(long, Attempt)
        short = idem.begin(scope="t", operation="o", key="short", fingerprint=TEN_EUROS, policy=SHORT)
        assert isinstance(short, Attempt)
        assert hung.asked.wait(30)
        for _ in range(3):
            renewed.clear()
            assert renewed.wait(30), "the thread that renews waits for an observer"
        long.complete(b"")
    finally:
        hung.over.set()
        log.removeHandler(handler)
        idem.close()


def test_what_a_hurried_thread_says_is_told_by_another_in_its_order(carrier: messenger.Messenger) -> None:
    """And all of it before the engine's end."""
    seen: list[events.Event] = []
    tellers: set[str] = set()
    announcer = Announcer([seen.append, lambda _: tellers.add(threading.current_thread().name)])
    in_a_hurry(carrier, say(announcer, range(500)))
    carrier.finish()
    assert said(seen) == list(range(500))
    assert tellers == {"idemcore-messenger"}


def test_an_observer_that_ends_the_thread_costs_no_further_event(carrier: messenger.Messenger) -> None:
    """SystemExit from an observer ended the thread that called it."""
    seen: list[events.Event] = []

    def exits(event: events.Event) -> None:
        seen.append(event)
        raise SystemExit

    announcer = Announcer([exits])
    in_a_hurry(carrier, say(announcer, range(3)))
    carrier.finish()
    assert said(seen) == [0, 1, 2]


def test_events_beyond_the_room_are_dropped_and_counted(
    carrier: messenger.Messenger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Three may wait while the first is being told; of ten, six are dropped, which the log says afterwards."""
    monkeypatch.setattr(messenger, "MOST_WAITING", 3)
    hung, announcer = told_to_one_that_hangs(carrier)
    in_a_hurry(carrier, say(announcer, range(1, 10)))
    hung.over.set()
    carrier.finish()
    assert said(hung.seen) == [0, 1, 2, 3]
    assert "observers took too long: 6 events were not told" in caplog.text


def test_the_end_of_a_program_waits_for_an_observer_within_a_bound(
    carrier: messenger.Messenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returns while the observer still hangs; what is said later has nobody else to tell it."""
    monkeypatch.setattr(messenger, "TOLD_WITHIN", 0.01)
    hung, announcer = told_to_one_that_hangs(carrier)
    carrier.finish()
    hung.over.set()
    in_a_hurry(carrier, say(announcer, range(1, 2)))
    assert 1 in said(hung.seen)


def test_without_a_thread_to_tell_it_an_event_is_told_at_once(
    carrier: messenger.Messenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system is out of threads: no event is lost for that."""
    real = threading.Thread.start
    seen: list[events.Event] = []
    announcer = Announcer([seen.append])

    def start(thread: threading.Thread) -> None:
        if thread.name == "idemcore-messenger":
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    in_a_hurry(carrier, say(announcer, range(2)))
    assert said(seen) == [0, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_child_tells_its_own_events_and_none_of_its_parents() -> None:
    """Its parent's thread did not come along, and what waits there is told there."""
    hung = Hung()
    idem = Engine("memory://", observers=[lambda event: hung(event) if loud(event) else None])
    held = [idem.begin(scope="t", operation="o", key="parent", fingerprint=TEN_EUROS, policy=SHORT)]
    assert hung.asked.wait(30)
    child = os.fork()
    if child == 0:  # no assert here: the child answers by its exit status
        wrong = True
        try:
            hung.asked, hung.over, hung.seen = threading.Event(), threading.Event(), []
            hung.over.set()
            held.append(idem.begin(scope="t", operation="o", key="child", fingerprint=TEN_EUROS, policy=SHORT))
            wrong = not hung.asked.wait(30)
            idem.close()
            wrong = wrong or len(hung.seen) != 1
        finally:
            os._exit(wrong)
    _, status = os.waitpid(child, 0)
    hung.over.set()
    idem.close()
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(hung.seen) == 1


def loud(event: events.Event) -> bool:
    return isinstance(event, events.LeaseEnded)


def test_no_event_is_told_while_a_lock_is_held() -> None:
    """An observer that calls the engine may want that very lock; its own events are told as it makes them."""
    lock, free = threading.Lock(), []
    announcer = Announcer([lambda _: free.append(not lock.locked())])
    with announcer.held(), lock:
        announcer(events.Started, IDENTITY, 1)
        with announcer.held():
            announcer(events.Started, IDENTITY, 2)
        assert free == []
    assert free == [True, True]
    announcer(events.Started, IDENTITY, 3)
    assert free == [True, True, True]


def test_an_engine_tells_as_before_after_its_store_was_replaced_for_a_test() -> None:
    """The thread that told what the replaced one had to say has ended; the former one's is another."""
    seen: list[str] = []
    said = threading.Event()

    def notes(event: events.Event) -> None:
        if loud(event):
            seen.append(threading.current_thread().name)
            said.set()

    with Engine("memory://", observers=[notes]) as idem:
        with fresh(idem):
            pass
        held = idem.begin(scope="t", operation="o", key="k", fingerprint=TEN_EUROS, policy=SHORT)
        assert said.wait(30)
        assert isinstance(held, Attempt)
    assert seen == ["idemcore-messenger"]
