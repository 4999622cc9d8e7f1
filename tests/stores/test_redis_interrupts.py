"""An exception from a signal handler at every step of a verb on Redis: no answer is ever read as another's."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from redis import Redis

from idemcore.errors import StoreUnavailable
from idemcore.identity import Identity
from idemcore.record import Claim, Record
from idemcore.stores.redis import RedisStore
from tests.conditions import until
from tests.interrupts import Interrupt, Steps
from tests.stores.redis_case import Keyspace
from tests.stores.services import REDIS_URL

OTHERS, MINE = b"o" * 16, b"m" * 16

STRUCK = ("/redis/client.py", "/redis/connection.py", "/stores/redis/server.py", "/stores/redis/clients.py")


def made(key: str, token: bytes) -> Claim:
    return Claim(Identity("t", "o", key), "v1.exact:1", token, 1, 30.0, 600.0, 3600.0, hold=False)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["the store's own", "the caller's"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in weakrefs' callbacks
def test_an_interrupt_leaves_no_answer_for_the_next_verb(keyspace: Keyspace, of: str) -> None:
    """A claim granted to one that broke off must not be read as granted to the next, which has none."""
    other = keyspace.open()
    store = other
    broken = 0
    for nth in range(1, 5000):
        if nth % 50 == 1:  # a pool of redis-py's loses some places by what strikes inside of it
            client = Redis.from_url(REDIS_URL)
            store = RedisStore(REDIS_URL if of == "the store's own" else client, prefix=keyspace.prefix)
            store.check()
        with Steps(nth, STRUCK) as steps:
            try:
                store.reserve(made(f"a{nth}", MINE))
            except Interrupt:
                broken += 1
        if not steps.struck:
            break
        other.reserve(made(f"b{nth}", OTHERS))
        record = store.reserve(made(f"b{nth}", MINE))
        assert isinstance(record, Record)
        assert record.token == OTHERS
    assert broken > 100
    other.close()


@pytest.mark.parametrize("verb", ["reserve", "find", "sweep", "check"])
def test_an_interrupt_leaves_a_command_of_another_thread_alone(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The caller's own BLPOP, on the client that the store uses too, gets what it waits for."""
    name = keyspace.prefix.rstrip(":")
    client = Redis.from_url(REDIS_URL, client_name=name)
    store = RedisStore(client, prefix=keyspace.prefix)
    store.check()
    verbs: dict[str, Any] = {
        "reserve": lambda: store.reserve(made("a", MINE)),
        "find": lambda: store.find(limit=1),
        "sweep": lambda: store.sweep(1),
        "check": store.check,
    }
    jobs, got = f"{keyspace.prefix}jobs", []

    def wait() -> None:
        try:
            got.append(client.blpop([jobs], 30))
        except Exception as error:
            got.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert until(lambda: (name, "blpop") in [(c["name"], c["cmd"]) for c in keyspace.client.client_list()])
    connection_class = client.connection_pool.connection_class
    with monkeypatch.context() as patched:
        patched.setattr(connection_class, "read_response", struck)
        with pytest.raises(Interrupt):
            verbs[verb]()
    keyspace.client.rpush(jobs, b"job")
    waiting.join()
    assert got == [(jobs.encode(), b"job")]
    client.close()


def struck(*_: Any, **__: Any) -> Any:
    raise Interrupt


def test_a_connection_that_is_closed_under_a_verb_is_an_unavailable_store(
    keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may close the caller's connections; redis-py then finds None in their place."""
    client = Redis.from_url(REDIS_URL)
    store = RedisStore(client, prefix=keyspace.prefix)
    store.check()
    connection_class: Any = client.connection_pool.connection_class
    read = connection_class.read_response

    def read_when_cut(self: Any, *arguments: Any, **options: Any) -> Any:
        client.connection_pool.disconnect()
        return read(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(connection_class, "read_response", read_when_cut)
        with pytest.raises(StoreUnavailable):
            store.reserve(made("a", MINE))
        with pytest.raises(StoreUnavailable):
            store.find(limit=1)
    assert store.get(made("b", MINE).identity) is None
    client.close()
