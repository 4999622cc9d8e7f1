"""Redis under several processes: one grant per key, forks that share no socket."""

from __future__ import annotations

from contextlib import closing

import pytest

from idemcore.record import State
from idemcore.stores.redis import RedisStore
from tests.stores import racers
from tests.stores.redis_case import Keyspace

KEYS = [f"key-{number:03}" for number in range(60)]


@pytest.mark.parametrize("before", racers.BEFORE)
def test_eight_processes_share_every_key_out_once(keyspace: Keyspace, before: str) -> None:
    """RAC-01, RAC-03: keys behind a barrier, one grant for each, whatever stood there before."""
    with closing(keyspace.open()) as store:
        racers.leave(store, KEYS, before, keyspace.age)
    assert racers.race(keyspace.url, keyspace.prefix, KEYS) == ([], KEYS, {State.COMPLETED})


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")  # forking is what is tested
@pytest.mark.parametrize("owned", [True, False], ids=["url", "client"])
def test_forked_workers_use_connections_of_their_own(keyspace: Keyspace, owned: bool) -> None:
    """SQL-04: used in the parent first, by a thread that goes on writing too, then in forked workers."""
    store = keyspace.open() if owned else RedisStore(keyspace.client, prefix=keyspace.prefix)
    store.reserve(racers.claim("parent"))
    with racers.writing(store):
        assert racers.forked_workers(store) == racers.FORKED
    assert store.reserve(racers.claim("after")) is None
    assert len(keyspace.every()) == 84  # 80 of the workers' own, and: parent, busy, shared, after
    store.close()
