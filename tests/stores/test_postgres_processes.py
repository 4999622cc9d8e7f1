"""PostgreSQL under several processes: one grant per key, forks that share no socket."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine

from idemcore.record import State
from idemcore.stores.sql import SQLAlchemyStore
from tests.stores import racers
from tests.stores.postgres_case import Table, url

KEYS = [f"key-{number:03}" for number in range(60)]


@pytest.mark.parametrize("before", racers.BEFORE)
def test_eight_processes_share_every_key_out_once(table: Table, store: SQLAlchemyStore, before: str) -> None:
    """RAC-01, RAC-03: keys behind a barrier, one grant for each, whatever stood there before."""
    racers.leave(store, KEYS, before, table.age)
    assert racers.race(table.url, table.name, KEYS) == ([], KEYS, {State.COMPLETED})


def test_four_processes_make_the_schema_at_once(table: Table) -> None:
    """IF NOT EXISTS alone would fail in one of them."""
    racers.together(4, racers.make_schema, table.url, table.name)
    assert table.execute("SELECT count(*) FROM {}") == [(4,)]


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")  # forking is what is tested
@pytest.mark.parametrize("owned", [True, False], ids=["url", "engine"])
def test_forked_workers_use_connections_of_their_own(table: Table, owned: bool) -> None:
    """SQL-04: used in the parent first, by a thread that goes on writing too, then in forked workers."""
    engine = create_engine(url())
    store = table.open() if owned else SQLAlchemyStore(engine, table=table.table)
    store.create_schema()
    store.reserve(racers.claim("parent"))
    with racers.writing(store):
        assert racers.forked_workers(store) == racers.FORKED
    assert store.reserve(racers.claim("after")) is None
    assert table.execute("SELECT count(*) FROM {}") == [(84,)]
    store.close()
    engine.dispose()
