"""What others remember with, called as their own adapters call it; each on its own default settings."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

FINGERPRINT = 64 * "a"
HEADERS = {"Content-Type": "text/plain"}
BODY = 200 * b"x"

Work = Callable[[int], None]


@dataclass(frozen=True)
class Side:
    """One way to remember: `new` claims keys and completes them, `replay` finds what is completed."""

    name: str
    new: Work
    replay: Work


def idemkit_in_memory() -> Side:
    from idemkit import InMemoryBackend

    logging.getLogger("idemkit").setLevel(logging.ERROR)
    # A backend for each round: it goes through all that it holds at every claim.
    return _idemkit("idemkit", lambda: InMemoryBackend(max_size=1_000_000), asyncio.new_event_loop())


@contextmanager
def idemkit_on_postgresql(dsn: str, application: str) -> Iterator[list[Side]]:
    """Through asyncpg, the driver that it takes; nothing where that cannot be installed."""
    try:
        import asyncpg
    except ImportError:
        yield []
        return
    from idemkit import PostgresBackend
    from idemkit.backends.postgres import init_pg

    loop, table = asyncio.new_event_loop(), f"bench_idemkit_{uuid.uuid4().hex[:8]}"
    loop.run_until_complete(init_pg(dsn, table=table))
    backend = PostgresBackend.from_url(
        dsn, table=table, min_size=1, server_settings={"application_name": application}
    )

    async def remove() -> None:
        await backend.aclose()
        connection = await asyncpg.connect(dsn)
        await connection.execute(f"DROP TABLE {table}")
        await connection.close()

    try:
        yield [_idemkit("idemkit, asyncpg", lambda: backend, loop)]
    finally:
        loop.run_until_complete(remove())
        loop.close()


def idemkit_on_redis(url: str, prefix: str) -> Side:
    from idemkit import RedisBackend

    loop = asyncio.new_event_loop()
    backend = RedisBackend.from_url(url, namespace=f"{prefix}idemkit")
    return _idemkit("idemkit", lambda: backend, loop)


def _idemkit(name: str, make: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> Side:
    """On one event loop for a whole round, so that starting it is not measured."""

    async def one(backend: Any, key: str) -> None:
        claimed = await backend.claim(key, FINGERPRINT, 1, 30.0)
        assert claimed.our_claim_token
        assert await backend.complete(key, claimed.our_claim_token, 201, HEADERS, BODY, 86_400.0)

    async def new(calls: int) -> None:
        backend = make()
        for _ in range(calls):
            await one(backend, uuid.uuid4().hex)

    async def replay(calls: int) -> None:
        for _ in range(calls):
            found = await held.claim(kept, FINGERPRINT, 1, 30.0)
            assert found.record.response_body == BODY

    held, kept = make(), uuid.uuid4().hex
    loop.run_until_complete(one(held, kept))
    return Side(
        name,
        lambda calls: loop.run_until_complete(new(calls)),
        lambda calls: loop.run_until_complete(replay(calls)),
    )


def powertools_in_memory() -> Side:
    from benchmarks.powertools_layer import InMemory

    return _powertools("Powertools, a dict as its layer", InMemory(), "charge")


def powertools_on_redis(url: str, prefix: str) -> Side:
    from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer
    from redis import Redis

    client = Redis.from_url(url, decode_responses=True)
    return _powertools("Powertools", CachePersistenceLayer(client=client), f"{prefix}charge")


def _powertools(name: str, layer: Any, function: str) -> Side:
    """Its two calls around a function; a replay is an error that brings the record, or has it looked up."""
    from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig
    from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError

    layer.configure(IdempotencyConfig(), function)
    answer, kept = {"body": BODY.decode()}, uuid.uuid4().hex

    def one(key: str) -> None:
        layer.save_inprogress(data={"key": key}, remaining_time_in_millis=30_000)
        layer.save_success(data={"key": key}, result=answer)

    def new(calls: int) -> None:
        for _ in range(calls):
            one(uuid.uuid4().hex)

    def replay(calls: int) -> None:
        for _ in range(calls):
            try:
                layer.save_inprogress(data={"key": kept}, remaining_time_in_millis=30_000)
            except IdempotencyItemAlreadyExistsError as found:
                record = found.old_data_record or layer.get_record({"key": kept})
            assert record is not None
            assert record.response_json_as_dict() == answer

    one(kept)
    return Side(name, new, replay)
