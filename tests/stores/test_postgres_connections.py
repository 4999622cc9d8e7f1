"""PostgreSQL: the store's own connections stay with it between verbs, and keep nobody waiting."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from sqlalchemy import Engine

from idemcore.record import Record
from idemcore.stores.sql import SQLAlchemyStore
from tests.stores.claims import ANSWER, B, claim, completed
from tests.stores.postgres_case import Table as Table


def test_verbs_after_one_another_do_not_ask_the_pool(
    store: SQLAlchemyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To take a connection from it and give that back would be a seventh of a replay's time."""
    asked: list[None] = []
    monkeypatch.setattr(Engine, "raw_connection", lambda _: asked.append(None))
    completed(store)
    kept = store.reserve(claim(token=B))
    assert isinstance(kept, Record)
    assert kept.answer == ANSWER
    assert asked == []


def test_whoever_waits_for_a_connection_gets_the_first_that_comes_back(store: SQLAlchemyStore) -> None:
    """All fifteen are out: what is given back goes to the one who waits, not to whoever comes next."""
    source = store._db.source
    out: list[Any] = [source.take()[1] for _ in range(15)]
    done: list[object] = []
    waiting = threading.Thread(target=lambda: done.append(store.reserve(claim())))
    waiting.start()
    queue = source._engine.pool._pool  # type: ignore[attr-defined] # it is an OwnEngine
    while not queue.not_empty._waiters:
        time.sleep(0.001)
    source.give(out.pop())
    waiting.join(timeout=20)
    assert done == [None]
    for taken in out:
        source.give(taken)
    assert isinstance(store.reserve(claim(token=B)), Record)


def test_connections_that_stay_are_given_up_with_the_pool(store: SQLAlchemyStore) -> None:
    """DEG-01: one was found dead, so the server was restarted; a verb must not find another dead one."""
    source = store._db.source
    for end in (source.refresh, source.close):
        pairs = [source.take() for _ in range(3)]
        for _, taken in pairs:
            source.give(taken)
        end()
        assert all(connection.closed for connection, _ in pairs)
    assert store.reserve(claim()) is None
