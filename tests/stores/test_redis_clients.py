"""The store's own connections to Redis: kept between verbs, looked at after a rest, none lost to an error."""

from __future__ import annotations

from typing import Any

import pytest
from redis import ConnectionPool, Redis

from idemcore.errors import StoreUnavailable
from idemcore.record import Record, Stored
from idemcore.stores.redis import RedisStore, clients
from tests.stores.claims import ANSWER, ONE, A, B, claim
from tests.stores.redis_case import Keyspace
from tests.stores.services import REDIS_URL


def by_url(keyspace: Keyspace, **options: Any) -> RedisStore:
    """A store whose connections bear its prefix as a name, and that has used one of them."""
    named = "&".join(f"{name}={value}" for name, value in {"client_name": keyspace.prefix, **options}.items())
    store = RedisStore(f"{REDIS_URL}?{named}", prefix=keyspace.prefix)
    store.check()
    return store


def open_connections(keyspace: Keyspace) -> list[Any]:
    return [each["id"] for each in keyspace.client.client_list() if each["name"] == keyspace.prefix]


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[None]:
    """One entry for each call from now on."""
    calls: list[None] = []
    call = getattr(owner, name)

    def watch(*arguments: Any, **options: Any) -> Any:
        calls.append(None)
        return call(*arguments, **options)

    monkeypatch.setattr(owner, name, watch)
    return calls


def test_verbs_after_one_another_share_a_connection_and_do_not_look_at_it(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What redis-py's pool does when it hands one out would cost as much as the command."""
    store = by_url(keyspace)
    (before,) = open_connections(keyspace)
    monkeypatch.setattr(clients, "_FRESH", 60.0)
    looks = counted(monkeypatch, ConnectionPool, "get_connection")
    store.reserve(claim())
    store.complete(claim(), ANSWER)
    store.reserve(claim(token=B))
    assert looks == []
    assert open_connections(keyspace) == [before]
    store.close()


@pytest.mark.parametrize("rest", [60.0, 0.0], ids=["used a moment ago", "after a rest"])
def test_a_connection_that_the_server_has_closed_costs_no_verb(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch, rest: float
) -> None:
    """DEG-01: one that died since its last command is replaced; after a rest before anything is sent on it."""
    store = by_url(keyspace)
    monkeypatch.setattr(clients, "_FRESH", rest)
    for connection in open_connections(keyspace):
        keyspace.client.client_kill_filter(_id=connection)
    scripts = counted(monkeypatch, Redis, "_send_command_parse_response")
    assert store.reserve(claim()) is None
    assert len(scripts) == (2 if rest else 1)
    assert store.complete(claim(), ANSWER) == Stored()
    store.close()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_small_pool_is_enough_for_every_verb(keyspace: Keyspace, most: int) -> None:
    """What is kept for the next verb leaves something for walks and sweeps, which ask for more at once."""
    store = by_url(keyspace, max_connections=most)
    for number in (1, 2):
        store.reserve(claim(f"k-{number}"))
        assert store.sweep(10).removed == 0
        assert len(store.find(limit=10)) == number
    assert len(open_connections(keyspace)) <= most
    store.close()


def test_a_verb_that_fails_costs_the_pool_no_connection(keyspace: Keyspace) -> None:
    """Else a pool with a limit would be empty after some errors."""
    store = by_url(keyspace, max_connections=2)
    _, index = keyspace.names.of(claim().identity)
    keyspace.client.set(index, "no index")
    for _ in range(5):
        with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
            store.forget(ONE, A)
    keyspace.client.delete(index)
    assert store.reserve(claim()) is None
    store.close()


def test_closing_leaves_no_connection_and_a_later_verb_opens_one(keyspace: Keyspace) -> None:
    """As with every store: `close` gives back what was opened, and ends nothing for good."""
    store = by_url(keyspace)
    assert store.reserve(claim()) is None
    store.close()
    assert open_connections(keyspace) == []
    record = store.reserve(claim(token=B))
    assert isinstance(record, Record)
    assert record.token == A
    store.close()
    assert open_connections(keyspace) == []
