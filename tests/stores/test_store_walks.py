"""Every store against the model of the contract, along random walks."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis.stateful import invariant

from idemcore.identity import Identity
from idemcore.record import Record, State
from idemcore.stores.memory import MemoryStore
from idemcore.stores.sql import SQLAlchemyStore
from tests.stores.machine import WALKS, StoreWalk, walk
from tests.stores.shelf_books import check_books, sizes


class MemoryWalk(StoreWalk):
    forgets_early = True

    def fresh_store(self) -> MemoryStore:
        return MemoryStore(clock=lambda: self.model.now)

    def move_time(self, seconds: float) -> None:
        pass

    def mark_committed(self, identity: Identity) -> None:
        assert isinstance(self.store, MemoryStore)
        shelf = self.store._shelf
        entry = shelf.entries[identity]
        entry.state, entry.hold = State.COMMITTED, False
        shelf.keep(entry, 0.0, self.model.now)  # as every verb does that ends a hold


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder that is gone afterwards."""
    path = tempfile.mkdtemp()
    yield path
    shutil.rmtree(path)


def test_memory_says_what_the_model_says() -> None:
    """MEM-02 in passing: nothing that the walk does leaves a line, an answer or a byte behind."""

    class Walk(MemoryWalk):
        @invariant()
        def the_books_say_what_the_records_say(self) -> None:
            assert isinstance(self.store, MemoryStore)
            check_books(self.store)

        def teardown(self) -> None:
            assert isinstance(self.store, MemoryStore)
            self.model.now += 1e9
            for identity, record, *_ in self.store.find(limit=10):
                if isinstance(record, Record) and record.hold:
                    assert self.store.resolve(identity, record.token, "released", 1.0)
            self.model.now += 1e9
            self.store.sweep(100)
            check_books(self.store)
            assert sizes(self.store) == [0, 0, 0]
            shelf = self.store._shelf
            assert (shelf.used_bytes, shelf._answer_bytes, len(shelf._lines)) == (0, 0, 0)

    walk(Walk, WALKS, steps=40)


def test_sqlite_says_what_the_model_says(folder: str) -> None:
    """One file for all walks, emptied for each; its clock is the model's."""
    on: list[StoreWalk] = []  # the one that is under way
    store = SQLAlchemyStore(f"sqlite:///{folder}/walk.db", clock=lambda: on[0].model.now if on else 0.0)

    class Walk(StoreWalk):
        def fresh_store(self) -> SQLAlchemyStore:
            on[:] = [self]
            with closing(sqlite3.connect(f"{folder}/walk.db")) as connection, connection:
                connection.execute("DELETE FROM idempotency_records")
            return store

        def move_time(self, seconds: float) -> None:
            pass

        def mark_committed(self, identity: Identity) -> None:
            with closing(sqlite3.connect(f"{folder}/walk.db")) as connection, connection:
                connection.execute(
                    "UPDATE idempotency_records SET state = 'committed', hold = 0 WHERE key = ?",
                    (identity.key,),
                )

    store.create_schema()
    walk(Walk, WALKS, steps=40)
    store.close()
