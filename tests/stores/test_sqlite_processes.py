"""SQLite under several processes: one grant per key, and no error of SQLite's reaches anyone."""

from __future__ import annotations

import multiprocessing
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from idemcore.record import State
from idemcore.stores.sql import DEFAULT_NAME, SQLAlchemyStore
from tests.stores import racers
from tests.stores.sqlite_case import File

KEYS = [f"key-{number:03}" for number in range(200)]


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Of this test alone; not made yet."""
    return File(tmp_path / "records.db")


@pytest.mark.parametrize("before", racers.BEFORE)
def test_eight_processes_on_one_file_share_every_key_out_once(file: File, before: str) -> None:
    """RAC-01, SQL-02: 200 keys behind a barrier, one grant for each, whatever stood there before."""
    with closing(SQLAlchemyStore(file.url)) as store:
        store.create_schema()
        racers.leave(store, KEYS, before, file.age)
    assert racers.race(file.url, DEFAULT_NAME, KEYS) == ([], KEYS, {State.COMPLETED})


def test_four_processes_make_the_schema_at_once(file: File) -> None:
    """All of them find a table afterwards, and none an error."""
    racers.together(4, racers.make_schema, file.url, DEFAULT_NAME)
    store = SQLAlchemyStore(file.url)
    store.check()
    assert len(store.find(limit=10)) == 4
    store.close()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")  # forking is what is tested
@pytest.mark.parametrize("owned", [True, False], ids=["url", "engine"])
def test_forked_workers_use_connections_of_their_own(file: File, owned: bool) -> None:
    """SQL-04: used in the parent first, by a thread that goes on writing too, then in forked workers."""
    engine = create_engine(file.url)
    store = SQLAlchemyStore(file.url if owned else engine)
    store.create_schema()
    store.reserve(racers.claim("parent"))
    if not owned:
        engine.dispose()  # as the documentation asks of whoever brings an engine
    with racers.writing(store) if owned else nullcontext():
        assert racers.forked_workers(store) == racers.FORKED
    assert store.reserve(racers.claim("after")) is None
    assert len(store.find(operation="race", limit=100)) == 83 + owned
    assert file.execute("PRAGMA integrity_check") == [("ok",)]
    store.close()
    engine.dispose()


def outlive_the_parent(store: SQLAlchemyStore, go_on: Any, results: Any) -> None:
    """Uses the store, waits until the parent has closed its own, and records one more outcome."""
    store.reserve(racers.claim("early"))
    results.put("ready")
    go_on.get()
    store.complete(racers.claim("late"), racers.ANSWER)
    results.put("recorded")
    go_on.get()
    store.close()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")  # forking is what is tested
def test_what_a_child_records_survives_its_parents_last_connection(file: File) -> None:
    """SQL-04: the parent closes while the child goes on: SQLite must not take the log away under the child."""
    store = SQLAlchemyStore(file.url)
    store.create_schema()
    context = multiprocessing.get_context("fork")
    go_on, results = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=outlive_the_parent, args=(store, go_on, results))
    child.start()
    assert results.get() == "ready"
    store.reserve(racers.claim("parent"))
    store.close()
    go_on.put("closed")
    assert results.get() == "recorded"
    later = SQLAlchemyStore(file.url)
    assert {found.identity.key for found in later.find(limit=10)} == {"early", "parent", "late"}
    later.close()
    go_on.put("end")
    child.join()
    assert child.exitcode == 0
    child.close()
