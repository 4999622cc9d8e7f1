"""Redis: what a verb costs, whose clock decides, what expires, lost acknowledgements, bad days."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from idemcore import Engine
from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable
from idemcore.identity import Identity
from idemcore.record import Record, State, Stored, Superseded, Swept, UnreadableRecord
from idemcore.stores.redis import RedisStore, scripts
from idemcore.stores.redis.names import Names
from tests.stores.claims import ANSWER, ONE, A, B, claim, completed
from tests.stores.redis_case import Keyspace
from tests.stores.redis_server import PrivateServer, private_server

EVERY_SCRIPT = [script for script in vars(scripts).values() if isinstance(script, scripts.Script)]


@pytest.fixture
def store(keyspace: Keyspace) -> Iterator[RedisStore]:
    """By URL."""
    store = keyspace.open()
    yield store
    store.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PrivateServer]:
    """A server of this test's own."""
    with private_server(tmp_path) as server:
        yield server


def sent_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What redis-py's clients send from now on, command by command."""
    sent: list[Any] = []
    execute = Redis.execute_command

    def watch(self: Redis, *arguments: Any, **options: Any) -> Any:
        sent.append(arguments)
        return execute(self, *arguments, **options)

    monkeypatch.setattr(Redis, "execute_command", watch)
    return sent


def test_each_verb_is_one_command(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One round trip for a new claim, one for its outcome, one for a replay."""
    store.check()
    completed(store, "before")  # so that the scripts are known
    sent = sent_from_now_on(monkeypatch)
    completed(store)
    assert store.reserve(claim(token=B)) is not None
    names = [(command, digest) for command, digest, *_ in sent]
    digests = (scripts.RESERVE.digest, scripts.COMPLETE.digest, scripts.RESERVE.digest)
    assert names == [("EVALSHA", digest) for digest in digests]


def test_a_replay_writes_nothing(store: RedisStore, server: PrivateServer) -> None:
    """RAC-02: nothing enters the append-only file or goes to a replica."""
    own = RedisStore(server.url)
    completed(own)
    with Redis.from_url(server.url) as client:
        before = client.info("persistence")["rdb_changes_since_last_save"]
        for _ in range(5):
            assert own.reserve(claim(token=B)) is not None
        assert client.info("persistence")["rdb_changes_since_last_save"] == before
    own.close()


def test_the_servers_clock_decides(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """LEA-01: an application host 45 seconds off steals no lease."""
    store.reserve(claim())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 45)
    record = store.reserve(claim(token=B))
    assert isinstance(record, Record)
    assert record.lease_stands
    assert not store.take_over(A, claim(token=B))


def test_a_claim_and_its_expiry_are_one_command(store: RedisStore, keyspace: Keyspace) -> None:
    """DEG-03: from its first moment a claim has an end in Redis, and not its lease's."""
    store.reserve(claim())
    assert 86_400 + 600 - 60 < keyspace.ttl(ONE) <= 86_400 + 600 + 1
    keyspace.age(ONE, 3_600)  # long past its lease
    record = store.get(ONE)
    assert isinstance(record, Record)
    assert record.state is State.CLAIMED
    assert store.take_over(A, claim(token=B, attempt=2))
    assert keyspace.ttl(ONE) > 86_400


def test_what_waits_for_an_operator_never_expires(store: RedisStore, keyspace: Keyspace) -> None:
    """A claim on hold and an unknown outcome stay in Redis; a verdict gives them their end."""
    store.reserve(claim(hold=True))
    store.reserve(claim("k-2"))
    store.release(claim("k-2"), "unknown", "timeout")
    two = claim("k-2").identity
    assert (keyspace.ttl(ONE), keyspace.ttl(two)) == (-1, -1)
    assert store.renew(claim(hold=True)) is not None
    assert keyspace.ttl(ONE) == -1
    assert store.complete(claim(hold=True), ANSWER) == Stored()
    assert store.resolve(two, A, "released", 1_000.0)
    for identity in (ONE, two):
        assert 0 < keyspace.ttl(identity) <= 86_400 + 600 + 1


def test_an_abandoned_claim_that_expired_is_still_counted(store: RedisStore, keyspace: Keyspace) -> None:
    """SWE-01: Redis dropped the record at its end, and the index tells the sweeper, once."""
    completed(store, "done")
    store.reserve(claim("died"))
    store.reserve(claim("running", retention=10_000_000.0))
    assert store.sweep(10) == Swept(0, 0)
    keyspace.age(None, 100_000)
    assert [store.get(claim(key).identity) is None for key in ("done", "died", "running")] == [
        True,
        True,
        False,
    ]
    assert store.sweep(10) == Swept(0, 1, (claim("died").identity,))
    assert store.sweep(10) == Swept(0, 0)


def test_a_record_whose_time_has_just_come_is_as_good_as_none(store: RedisStore, keyspace: Keyspace) -> None:
    """Redis may drop it a moment later than that; each verb takes it for gone."""
    for key in ("reserve", "complete", "sweep"):
        store.reserve(claim(key)) if key == "sweep" else completed(store, key)
        keyspace.write(claim(key).identity, 7, 1.0)  # expires_at; its expiry in Redis stays far away
        keyspace.write(claim(key).identity, 6, 1.0)
        record = store.get(claim(key).identity)
        assert isinstance(record, Record)
        assert record.forgettable
    assert store.reserve(claim("reserve", B)) is None
    assert store.complete(claim("complete", B, fingerprint="v1.x:2"), ANSWER) == Stored()
    name, index = keyspace.names.of(claim("sweep").identity)
    keyspace.client.zadd(index, {name: 1})
    assert store.sweep(10).abandoned == 1
    assert store.get(claim("sweep").identity) is None


def test_nothing_is_left_in_the_index_of_what_has_ended_well(store: RedisStore, keyspace: Keyspace) -> None:
    """Completed, released, deleted, forgotten: a store of finished work has empty indexes."""
    for key in ("completed", "released", "deleted", "forgotten"):
        store.reserve(claim(key))
        assert keyspace.is_indexed(claim(key).identity)
    store.complete(claim("completed"), ANSWER)
    store.release(claim("released"), "released")
    store.release(claim("deleted"), "deleted")
    keyspace.age(claim("forgotten").identity, 31)
    store.forget(claim("forgotten").identity, A)
    assert not any(map(keyspace.client.exists, keyspace.names.indexes))


def test_flushed_scripts_are_sent_again(store: RedisStore, keyspace: Keyspace, server: PrivateServer) -> None:
    """A restart or SCRIPT FLUSH in the middle of a run costs nobody an error, in lists and sweeps too."""
    own = RedisStore(server.url)
    with Redis.from_url(server.url) as client:
        for verb in (
            lambda: own.reserve(claim()),
            lambda: own.complete(claim(), ANSWER),
            lambda: own.get(ONE),
            lambda: own.find(limit=9),
            lambda: own.find(only_open=True, limit=9),
            lambda: own.sweep(9),
        ):
            client.script_flush()
            verb()
        client.script_flush()
        record = own.reserve(claim(token=B))
    assert isinstance(record, Record)
    assert record.answer == ANSWER
    own.close()


def test_every_script_is_known_to_redis_by_our_digest(keyspace: Keyspace) -> None:
    """Else each call would send its text."""
    for script in EVERY_SCRIPT:
        assert keyspace.client.script_load(script.text).encode() == script.digest


def cut_after(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command is carried out, and its connection dies before the answer is read."""
    connection_class = store._server._client.connection_pool.connection_class
    read = connection_class.read_response
    cut = False

    def read_once(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal cut
        answer = read(self, *arguments, **options)
        if not cut:
            cut = True
            self.disconnect()
            raise redis.exceptions.ConnectionError("Connection closed by server.")
        return answer

    monkeypatch.setattr(connection_class, "read_response", read_once)


def test_a_lost_acknowledgement_is_recognised_as_ones_own(
    store: RedisStore, keyspace: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RAC-04: redis-py sends again what it got no answer to, and each verb then finds its work done."""
    store.check()
    cut_after(store, monkeypatch)
    record = store.reserve(claim())
    assert isinstance(record, Record)
    assert (record.state, record.token, record.attempt) == (State.CLAIMED, A, 1)
    cut_after(store, monkeypatch)
    assert store.complete(claim(), ANSWER) == Stored()
    store.reserve(claim("k-2"))
    keyspace.age(claim("k-2").identity, 31)
    second = claim("k-2", B, attempt=2)
    cut_after(store, monkeypatch)
    assert store.take_over(A, second)
    cut_after(store, monkeypatch)
    assert store.renew(second) is not None
    for to in ("released", "unknown", "deleted"):
        store.reserve(claim(to))
        cut_after(store, monkeypatch)
        assert store.release(claim(to), to, "why")  # type: ignore[arg-type] # one of the three
    cut_after(store, monkeypatch)
    assert store.resolve(claim("unknown").identity, A, ANSWER, 1_000.0)
    cut_after(store, monkeypatch)
    assert store.forget(ONE, A)


def test_a_restarted_server_costs_no_request(tmp_path: Path) -> None:
    """DEG-01: idle connections that died are replaced; the records are in its file."""
    with private_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        store = RedisStore(server.url)
        completed(store)
        server.kill()
        server.start()
        record = store.reserve(claim(token=B))
        assert isinstance(record, Record)
        assert record.answer == ANSWER
        completed(store, "k-2")
        store.close()


def test_a_server_that_is_not_there_is_try_later_without_a_password() -> None:
    """DEG-01: refused at once; the client's error is the cause, the message shows no address."""
    store = RedisStore("redis://user:secret@127.0.0.1:1/0")
    for verb in (lambda: store.reserve(claim()), store.check, lambda: store.sweep(1)):
        with pytest.raises(StoreUnavailable) as refused:
            verb()
        assert isinstance(refused.value.__cause__, redis.exceptions.ConnectionError)
        shown = "".join(traceback.format_exception(refused.value)) + repr(store)
        assert "secret" not in shown
        assert "127.0.0.1" not in str(refused.value)
    store.close()


def test_a_server_that_hangs_is_given_up(server: PrivateServer) -> None:
    """DEG-02: a stopped server is try later, within the client's limit; by URL a limit is set."""
    mine = RedisStore(server.url)
    assert mine._server._client.connection_pool.connection_kwargs["socket_timeout"] == 3.0
    mine.close()
    client = Redis.from_url(server.url, socket_timeout=0.05, retry=Retry(NoBackoff(), 0))
    store = RedisStore(client)
    completed(store)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match="in time"):
            store.reserve(claim(token=B))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    client.close()


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts_is_refused(server: PrivateServer, policy: str) -> None:
    """At the check and at the first use: an evicted record is an operation that runs again."""
    with Redis.from_url(server.url) as client:
        client.config_set("maxmemory-policy", policy)
        store = RedisStore(server.url)
        for verb in (store.check, lambda: store.reserve(claim()), lambda: store.find(limit=1)):
            with pytest.raises(ConfigurationError, match=policy):
                verb()
        assert client.dbsize() == 0
        told = RedisStore(server.url, allow_eviction=True)
        told.check()
        completed(told)
        told.close()
        client.config_set("maxmemory-policy", "noeviction")
        completed(store, "k-2")  # the same store, once the server is set right
        store.close()


def test_the_policy_is_asked_for_once(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before every claim."""
    store.get(ONE)
    sent = sent_from_now_on(monkeypatch)
    store.reserve(claim())
    assert [command for command, *_ in sent] == ["EVALSHA"]


@pytest.mark.parametrize(
    ("denied", "refused"), [("-config", None), ("-info", None), ("-info -config", "allow_eviction")]
)
def test_a_managed_server_may_keep_its_settings_to_itself(
    server: PrivateServer, denied: str, refused: str | None
) -> None:
    """INFO says it where CONFIG is forbidden, and the other way round; else the error says so."""
    with Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", *denied.split())
    store = RedisStore(server.url.replace("127.0.0.1", "app:pw@127.0.0.1"))
    if refused is None:
        completed(store)
    else:
        with pytest.raises(ConfigurationError, match=refused):
            store.check()
    store.close()


def test_the_rights_that_the_docs_name_are_enough(server: PrivateServer) -> None:
    """Every verb, by a user who may do that much and no more."""
    docs = (Path(__file__).parents[2] / "docs" / "redis.md").read_text()
    (rights,) = [line for line in docs.splitlines() if line.startswith("ACL SETUSER app ")]
    with Redis.from_url(server.url) as client:
        client.execute_command(*rights.split())
    password = rights.partition(">")[2].split()[0]
    store = RedisStore(server.url.replace("127.0.0.1", f"app:{password}@127.0.0.1"))
    with Engine(store, observers=()) as idem:
        idem.create_schema()
        idem.check()
    completed(store)
    assert len(store.find(limit=5)) == 1
    store.reserve(claim("k-2"))
    store.renew(claim("k-2"))
    assert store.find(only_open=True, limit=5) == []
    store.release(claim("k-2"), "unknown")
    assert store.resolve(claim("k-2").identity, A, "released", 10.0)
    assert store.forget(ONE, A)
    assert store.sweep(5) == Swept(0, 0)
    store.close()


def test_a_full_server_is_store_full_and_still_replays(server: PrivateServer) -> None:
    """A claim is refused whole, nothing is half written; what was recorded is given back."""
    store = RedisStore(server.url)
    completed(store)
    store.reserve(claim("running"))
    with Redis.from_url(server.url) as client:
        client.config_set("maxmemory", "1mb")
        keys = sorted(client.keys())
        with pytest.raises(StoreFull):
            store.reserve(claim("k-2"))
        with pytest.raises(StoreFull):
            store.complete(claim("running"), ANSWER)
        record = store.reserve(claim(token=B))
        assert isinstance(record, Record)
        assert record.answer == ANSWER
        assert sorted(client.keys()) == keys
        client.config_set("maxmemory", "0")
    assert store.complete(claim("running"), ANSWER) == Stored()
    store.close()


def test_a_replica_is_try_later(server: PrivateServer) -> None:
    """DEG-01: a failover under way: records can be looked at, claims are refused; the check says so."""
    store = RedisStore(server.url)
    completed(store)
    with Redis.from_url(server.url) as client:
        client.replicaof("127.0.0.1", "1")
        client.config_set("replica-serve-stale-data", "yes")
        for verb in (store.check, lambda: store.reserve(claim("k-2"))):
            with pytest.raises(StoreUnavailable, match="replica"):
                verb()
        assert store.reserve(claim(token=B)) is not None
    store.close()


def test_a_wrong_password_is_a_mistake_in_the_set_up(server: PrivateServer) -> None:
    """No retry helps, and no message shows what was tried."""
    with Redis.from_url(server.url) as client:
        client.config_set("requirepass", "right")
        for login in ("", ":wrong-secret@", "nobody:wrong-secret@"):
            store = RedisStore(server.url.replace("127.0.0.1", f"{login}127.0.0.1"))
            with pytest.raises(ConfigurationError, match="password") as refused:
                store.check()
            assert "wrong-secret" not in "".join(traceback.format_exception(refused.value))
            store.close()


def test_a_refused_command_is_in_no_traceback(server: PrivateServer) -> None:
    """Redis quotes the arguments of a command that it does not know: a key of a caller's among them."""
    options = ("--rename-command", "EVALSHA", "gone")
    with private_server(server.folder, *options, program=server.program) as other:
        store = RedisStore(other.url)
        hidden = claim("secret-key")
        with pytest.raises(ConfigurationError, match="does not know") as refused:
            store.reserve(hidden)
        assert "secret-key" not in "".join(traceback.format_exception(refused.value)).replace(
            'claim("secret-key")', ""
        )
        store.close()


def test_a_key_of_another_type_is_left_alone(store: RedisStore, keyspace: Keyspace) -> None:
    """Somebody else's list under our name is an unreadable record, not an error, and is not overwritten."""
    name, _ = keyspace.names.of(ONE)
    keyspace.client.rpush(name, "not ours")
    unreadable = store.reserve(claim())
    assert isinstance(unreadable, UnreadableRecord)
    assert store.get(ONE) == unreadable
    assert store.complete(claim(), ANSWER) == Superseded(unreadable)
    assert not store.take_over(A, claim())
    assert not store.forget(ONE, A)
    (found,) = store.find(limit=9)
    assert found.record == unreadable
    assert keyspace.client.lrange(name, 0, -1) == [b"not ours"]


@pytest.mark.parametrize(
    "value", [b"", b"\x01", b"\x01C0-", b"text that is long enough to look like a head....." * 3]
)
def test_any_bytes_are_an_unreadable_record(store: RedisStore, keyspace: Keyspace, value: bytes) -> None:
    """SEC-02: nothing is guessed, nothing raises."""
    keyspace.client.set(keyspace.names.of(ONE)[0], value)
    unreadable = store.reserve(claim())
    assert isinstance(unreadable, UnreadableRecord)
    assert store.complete(claim(), ANSWER) == Superseded(unreadable)
    assert [found.record for found in store.find(limit=9)] == [unreadable]


def test_durations_beyond_any_calendar_are_kept_for_good(store: RedisStore, keyspace: Keyspace) -> None:
    """A retention of timedelta.max is for ever, not an overflow."""
    for_ever = claim(retention=86_399_999_999_999.0, max_hold=86_399_999_999_999.0)
    assert store.reserve(for_ever) is None
    assert store.renew(for_ever) is not None
    assert store.complete(for_ever, ANSWER) == Stored()
    assert keyspace.ttl(ONE) > 1e12


def test_stores_with_other_prefixes_do_not_meet(store: RedisStore, keyspace: Keyspace) -> None:
    """One database serves several programs, and a prefix with glob characters is taken as it is."""
    completed(store)
    other = RedisStore(keyspace.url, prefix=keyspace.prefix + "*[a]?")
    try:
        assert other.get(ONE) is None
        completed(other)
        assert len(other.find(limit=9)) == len(store.find(limit=9)) == 1
        assert other.forget(ONE, A)
        assert isinstance(store.get(ONE), Record)
    finally:
        other.close()
    with pytest.raises(ConfigurationError, match="braces"):
        RedisStore(keyspace.url, prefix="a{b}")


def test_a_long_walk_shows_every_record_once(store: RedisStore, keyspace: Keyspace) -> None:
    """Pages of a few, over many steps of the server's own walk, filters on the way."""
    with keyspace.client.pipeline(transaction=False) as pipeline:
        for number in range(2_500):
            pipeline.set(keyspace.names.of(Identity("t", "op", str(number)))[0], b"damaged")
        pipeline.execute()
    completed(store)
    seen = []
    page = store.find(limit=400)
    while page:
        seen += [found.identity for found in page]
        page = store.find(limit=400, after=page[-1])
    assert len(seen) == len(set(seen)) == 2_501
    assert [found.identity for found in store.find(scope="tenant", limit=5)] == [ONE]
    assert [found.identity for found in store.find(state=State.COMPLETED, limit=5)] == [ONE]


def test_a_walk_of_what_is_open_goes_on_where_it_ended(store: RedisStore) -> None:
    """Across indexes and within one, whatever became of the last one seen."""
    keys = [f"k-{number}" for number in range(300)]
    for key in keys:
        store.reserve(claim(key))
        store.release(claim(key), "unknown")
    seen = []
    page = store.find(only_open=True, limit=70)
    while page:
        seen += [found.identity.key for found in page]
        assert store.forget(page[-1].identity, A)
        page = store.find(only_open=True, limit=70, after=page[-1])
    assert sorted(seen) == sorted(keys)


def test_a_client_that_decodes_is_refused(keyspace: Keyspace) -> None:
    """Records are bytes; an object that is no client of redis-py's is refused by name."""
    client = Redis.from_url(keyspace.url, decode_responses=True)
    with pytest.raises(ConfigurationError, match="decode_responses"):
        RedisStore(client)
    client.close()
    with pytest.raises(ConfigurationError, match="not int"):
        RedisStore(7)  # type: ignore[arg-type] # as in an untyped program


def test_a_client_of_the_callers_is_used_and_never_closed(keyspace: Keyspace) -> None:
    """Closing the store leaves it as it is."""
    client = Redis.from_url(keyspace.url, single_connection_client=True)
    store = RedisStore(client, prefix=keyspace.prefix)
    completed(store)
    connection = client.connection
    store.close()
    assert client.connection is connection
    assert client.ping()
    client.close()


@pytest.mark.parametrize("url", ["http://user:secret@h/0", "redis://user:secret@h:port/0", "secret"])
def test_a_wrong_url_is_named_by_its_scheme_alone(url: str) -> None:
    """Nothing after it, which may hold a password, is shown."""
    with pytest.raises(ConfigurationError) as refused:
        RedisStore(url)
    assert "secret" not in "".join(traceback.format_exception(refused.value)).replace(f'"{url}"', "")


def test_an_engine_opens_it_by_url(keyspace: Keyspace) -> None:
    """`Engine("redis://…")`, and a port that is none is a mistake in the set-up."""
    with Engine(keyspace.url, observers=()) as idem:
        assert isinstance(idem.store, RedisStore)
    with pytest.raises(IdempotencyError) as refused:
        Engine("redis://user:secret@h:port/0")
    assert "secret" not in str(refused.value)


def test_names_keep_identities_apart() -> None:
    """Byte for byte; what is beside a record has its slot tag, and a key's own braces count for nothing."""
    names = Names("p:")
    for key in ("{a}", "}{", "k:0", "ü", "\u2028"):
        identity = Identity("scope", "op", key)
        name, index = names.of(identity)
        assert names.identity(name) == identity
        assert names.index_of(name) == index
        assert name.startswith(index + b":")
        slots = [redis.crc.key_slot(part) for part in (name, index)]
        assert slots[0] == slots[1]
    assert names.identity(b"p:{00}:\xff") == Identity("\ufffd", "", "")
