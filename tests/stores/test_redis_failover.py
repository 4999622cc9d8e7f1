"""A failover from a Redis primary to its replica: what docs/redis.md says is lost is, and nothing else."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from redis import Redis

from idemcore import Attempt, Engine, Policy, Replay, StoreUnavailable
from tests.stores.redis_server import SERVER, PrivateServer, private_server

pytestmark = pytest.mark.skipif(not SERVER, reason="redis-server is not installed")


class Pair:
    """A primary, its replica, and what was done outside of both."""

    def __init__(self, primary: PrivateServer, replica: PrivateServer) -> None:
        self.primary, self.replica = primary, replica
        self.ledger: list[str] = []

    def pay(self, on: PrivateServer, key: str, policy: Policy | None = None) -> str:
        with Engine(on.url, policy=policy) as idem:
            begun = idem.begin(scope="shop", operation="pay", key=key, fingerprint="v1.x:1")
            if isinstance(begun, Replay):
                return f"replay {begun.outcome.body.decode()}"
            assert isinstance(begun, Attempt)
            with begun:
                self.ledger.append(key)
                begun.complete(f"paid {len(self.ledger)}".encode())
            return f"paid {len(self.ledger)}"

    def passed_on(self, *, within: int = 60_000) -> bool:
        """Whether the replica has, in so many milliseconds, all that the primary has acknowledged until now."""
        with Redis.from_url(self.primary.url) as client:
            client.incr("asked")  # WAIT speaks of what its own connection has written, and of all before that
            count: int = client.wait(1, within)
        return count == 1

    def promote(self) -> None:
        """What Sentinel, a cluster or a managed service does; the primary, if it lives, is not told."""
        with Redis.from_url(self.replica.url) as client:
            client.replicaof("NO", "ONE")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """The replica is up to date."""
    at_once = ("--repl-diskless-sync-delay", "0")
    (tmp_path / "primary").mkdir()
    (tmp_path / "replica").mkdir()
    with (
        private_server(tmp_path / "primary", *at_once) as primary,
        private_server(tmp_path / "replica", "--replicaof", f"127.0.0.1 {primary.port}") as replica,
    ):
        pair = Pair(primary, replica)
        assert pair.passed_on()
        yield pair


def test_what_was_passed_on_is_replayed_by_the_new_primary(pair: Pair) -> None:
    """Answers and running claims alike."""
    assert pair.pay(pair.primary, "k") == "paid 1"
    assert pair.passed_on()
    pair.primary.kill()
    pair.promote()
    assert pair.pay(pair.replica, "k") == "replay paid 1"
    assert pair.ledger == ["k"]


@pytest.mark.parametrize("on_abandoned", ["rerun", "block"])
def test_what_was_acknowledged_and_not_passed_on_runs_again(
    pair: Pair, on_abandoned: Literal["rerun", "block"]
) -> None:
    """The loss that the page admits: the new primary has never heard of it, and `block` has nothing to hold.

    WAIT tells that no replica has it, and tells it when the write stands and the work is done.
    """
    policy = Policy(on_abandoned=on_abandoned)
    pair.promote()
    assert pair.pay(pair.primary, "k", policy) == "paid 1"
    assert not pair.passed_on(within=1)
    assert pair.pay(pair.primary, "k", policy) == "replay paid 1"
    pair.primary.kill()
    assert pair.pay(pair.replica, "k", policy) == "paid 2"
    assert pair.ledger == ["k", "k"]


@pytest.mark.parametrize("replica", ["hangs up", "falls silent"])
def test_a_primary_that_wants_a_replica_grants_nothing_without_one(pair: Pair, replica: str) -> None:
    """`min-replicas-to-write 1`: refused before anything runs, so the retry at the new primary is the first."""
    with Redis.from_url(pair.primary.url) as client:
        client.config_set("min-replicas-to-write", 1)
        assert pair.pay(pair.primary, "before") == "paid 1"
        client.config_set("min-replicas-max-lag", 1)
    if replica == "hangs up":
        pair.promote()
    else:
        pair.replica.process.send_signal(signal.SIGSTOP)
    give_up_at = time.monotonic() + 60
    with Redis.from_url(pair.primary.url) as client:
        while client.info("replication")["min_slaves_good_slaves"]:
            assert time.monotonic() < give_up_at
    with pytest.raises(StoreUnavailable, match="too few replicas"):
        pair.pay(pair.primary, "k")
    assert pair.pay(pair.primary, "before") == "replay paid 1"
    if replica == "falls silent":
        pair.replica.process.send_signal(signal.SIGCONT)
        pair.promote()
    assert pair.pay(pair.replica, "k") == "paid 2"
    assert pair.ledger == ["before", "k"]


def test_an_old_primary_that_has_become_a_replica_grants_nothing(pair: Pair) -> None:
    """A client that has not heard of the failover is told to try later."""
    assert pair.pay(pair.primary, "before") == "paid 1"
    assert pair.passed_on()
    pair.promote()
    with Redis.from_url(pair.primary.url) as client:
        client.replicaof("127.0.0.1", str(pair.replica.port))
    with pytest.raises(StoreUnavailable, match="is a replica"):
        pair.pay(pair.primary, "k")
    assert pair.pay(pair.replica, "k") == "paid 2"
    assert pair.ledger == ["before", "k"]
