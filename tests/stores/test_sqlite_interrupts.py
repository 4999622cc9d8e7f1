"""An exception from a signal handler in the middle of a verb on SQLite: nobody is locked out afterwards."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from idemcore import ConfigurationError
from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record
from idemcore.stores.sql import SQLAlchemyStore
from idemcore.stores.turns import Turns
from tests.interrupts import Interrupt, Interrupts

ANSWER = Answer("returned", b"", b"x" * 100)


def made(number: int) -> Claim:
    token = number.to_bytes(16, "big")
    return Claim(Identity("t", "o", f"k{number}"), "v1.exact:1", token, 1, 30.0, 600.0, 3600.0, hold=False)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in weakrefs' callbacks
def test_interrupts_at_random_moments_lock_nobody_out(tmp_path: Path) -> None:
    """SQL-02: hundreds of broken-off verbs; the next one works, so does another process's, so does a fork."""
    random = Random(5)
    store = SQLAlchemyStore(f"sqlite:///{tmp_path / 'records.db'}")
    store.create_schema()
    broken = 0
    with Interrupts() as interrupts:
        for number in range(1200):
            try:
                try:
                    interrupts.arm(random.uniform(5e-6, 700e-6))
                    store.reserve(made(number))
                    store.complete(made(number), ANSWER)
                finally:
                    interrupts.disarm()
            except Interrupt:
                broken += 1
    assert broken > 50
    gc.collect()
    turn = store._db.backend._turns.wait(0)  # type: ignore[attr-defined] # it is a SQLite
    assert turn is not None
    turn.give_back()
    for other in (store, SQLAlchemyStore(f"sqlite:///{tmp_path / 'records.db'}")):
        claim = made(10_000 + id(other) % 1000)
        assert other.reserve(claim) is None
        other.complete(claim, ANSWER)
        record = other.get(claim.identity)
        assert isinstance(record, Record)
        assert record.answer == ANSWER
        if other is not store:
            other.close()
    child = os.fork()
    if child == 0:
        answered = False
        try:
            store.get(made(1).identity)
            answered = True
        finally:
            os._exit(0 if answered else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.close()


def test_a_clock_that_raises_once_locks_nobody_out(tmp_path: Path) -> None:
    """The time is read with the write lock held; what goes wrong there gives it back."""
    fails = [False]

    def clock() -> float:
        if fails[0]:
            raise OSError("no clock")
        return 1000.0

    store = SQLAlchemyStore(f"sqlite:///{tmp_path / 'records.db'}", clock=clock)
    store.create_schema()
    store.reserve(made(1))
    fails[0] = True
    with pytest.raises(OSError, match="no clock") as caught:
        store.complete(made(1), ANSWER)
    fails[0] = False
    assert caught.value is not None  # the traceback is still held here, and so are its frames
    store.complete(made(1), ANSWER)
    store.close()


def test_a_turn_that_is_dropped_gives_itself_back() -> None:
    """Wherever its holder is interrupted; given back twice it is still one turn."""
    turns = Turns()
    turn = turns.wait(0)
    assert turn is not None
    assert turns.wait(0) is None
    del turn
    turn = turns.wait(0)
    assert turn is not None
    turn.give_back()
    turn.give_back()
    first, second = turns.wait(0), turns.wait(0)
    assert first is not None
    assert second is None


def test_a_pool_that_shares_one_connection_is_refused(tmp_path: Path) -> None:
    """SQL-03: a record on it would commit the caller's own open transaction."""
    engine = create_engine(f"sqlite:///{tmp_path / 'records.db'}", poolclass=StaticPool)
    with pytest.raises(ConfigurationError, match="StaticPool"):
        SQLAlchemyStore(engine)
    engine.dispose()


def test_a_turn_whose_making_was_interrupted_is_made_by_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last resort: nobody has the turn and none is free, so the next one in line makes it."""
    turns = Turns()
    turn = turns.wait(0)
    assert turn is not None

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise Interrupt

    monkeypatch.setattr("idemcore.stores.turns.Turn.__init__", interrupted)
    with pytest.raises(Interrupt):
        turn.give_back()
    del turn
    assert turns.wait(0) is not None
