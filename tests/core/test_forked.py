"""Forks: what one object's trouble, or an interrupt, must not spoil for the others."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from datetime import timedelta

import pytest

from idemcore import Attempt, Engine, Policy, forked
from idemcore.errors import InProgress
from tests.core.engine_fixtures import TEN_EUROS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),  # forking is what is tested
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),  # so it reports a hook's error
]


class Thing(forked.Forkable):
    """Is struck so often while it comes to rest, and goes on with its own lock."""

    def __init__(self, struck: int = 0, struck_in_child: int = 0) -> None:
        self.lock = threading.Lock()
        self.struck = struck
        self.struck_in_child = struck_in_child
        self.rested = False
        self.told = False
        forked.register(self)

    def at_rest(self) -> Generator[None]:
        with self.lock:
            if self.struck:
                self.struck -= 1
                raise KeyboardInterrupt
            self.rested = True
            yield

    def start_in_child(self) -> None:
        self.lock = threading.Lock()
        if self.struck_in_child:
            self.struck_in_child -= 1
            raise KeyboardInterrupt
        self.told = True


def in_child(*things: Thing) -> int:
    """How many of them a child found told, and their locks free."""
    child = os.fork()
    if child == 0:
        told = 0
        try:
            told = sum(thing.told and not thing.lock.locked() for thing in things)
        finally:
            os._exit(told)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("times", [1, 100])
def test_an_interrupt_in_one_hook_leaves_the_others_told(times: int) -> None:
    """SQL-04: the fork goes ahead, so all the others rest, go on in the parent, and start anew in the child."""
    struck = Thing(struck=times)
    others = [Thing() for _ in range(6)]
    assert in_child(struck, *others) == 7
    assert all(other.rested for other in others)
    assert struck.rested == (times == 1)  # what was broken off once was done once more
    assert not any(thing.lock.locked() for thing in (struck, *others))
    assert in_child(*others) == 6  # nothing is left held: a second fork works


def test_an_error_in_a_child_leaves_the_others_told() -> None:
    """One that cannot start anew is no reason for another to share its parent's sockets."""
    struck = Thing(struck_in_child=100)
    others = [Thing() for _ in range(6)]
    assert in_child(struck, *others) == 6


class Waiting(Thing):
    """Is struck while it still waits for its lock."""

    def at_rest(self) -> Generator[None]:
        if self.struck:
            raise KeyboardInterrupt
        yield


def test_a_lock_that_another_thread_holds_stays_its_own() -> None:
    """After an interrupt nothing is given back that the hook did not hold; the child has a lock of its own."""
    thing = Waiting(struck=100)
    with thing.lock:
        assert in_child(thing) == 1
        assert thing.lock.locked()


def test_a_child_has_all_places_to_wait_in() -> None:
    """SQL-04: the parent's waiters did not come along, nor does a lock that one of them held at the fork."""
    idem = Engine("memory://", observers=[], max_waiters=1, policy=Policy(wait=timedelta(milliseconds=50)))
    asked = {"scope": "t", "operation": "o", "key": "k", "fingerprint": TEN_EUROS}
    first = idem.begin(**asked)  # type: ignore[arg-type]
    room = idem._waiting_room
    assert isinstance(first, Attempt)
    waits = room.enter(first.identity, idem.policy)
    assert waits is not None
    with room._places._cond:  # type: ignore[attr-defined]  # as another thread holds it that comes or goes
        child = os.fork()
        if child == 0:
            entered = False
            try:
                entered = room.enter(first.identity, idem.policy) is not None
            finally:
                os._exit(0 if entered else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    waits.leave()
    with pytest.raises(InProgress):
        idem.begin(**asked)  # type: ignore[arg-type]
    first.complete(b"")
    idem.close()
