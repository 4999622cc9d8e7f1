"""The same function under each library, as its own pages recommend: the key is the order's id."""

from __future__ import annotations

import inspect
import json
import logging
import warnings
from collections.abc import Callable
from typing import Any

Function = Callable[[dict[str, Any]], Any]
NOBODY_LISTENS = "redis://127.0.0.1:1/0"


class NotTried(Exception):
    """There is no way to stage this here."""


def bare(function: Function, folder: str, redis: str, away: bool, fails: bool) -> Function:
    return function


def idemcore(function: Function, folder: str, redis: str, away: bool, fails: bool) -> Function:
    from idemcore import Engine, StoreUnavailable
    from idemcore_function import idempotent

    idem = Engine(f"sqlite:///{folder}/{'missing/' if away else ''}idemcore.db")
    if not away:
        idem.create_schema()
    if fails:
        once_failing(idem.store, "complete", StoreUnavailable("lost"))
    if function.__annotations__["return"] is Any:
        del function.__annotations__["return"]  # plain values, kept as they are
    return idempotent(idem, key="{order[id]}", namespace="orders.place")(function)


def idemkit(function: Function, folder: str, redis: str, away: bool, fails: bool) -> Function:
    from idemkit import MethodConfig, RedisBackend, idempotent_sync

    logging.getLogger("idemkit").setLevel(logging.CRITICAL)
    backend = RedisBackend.from_url(NOBODY_LISTENS if away else redis)
    if fails:
        once_failing(backend, "complete", ConnectionError("lost"))
    config = MethodConfig(
        key_fields=["order.id"],
        validation_fingerprint=lambda arguments: json.dumps(arguments["order"], sort_keys=True).encode(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return idempotent_sync(backend=backend, config=config)(function)


def powertools(function: Function, folder: str, redis: str, away: bool, fails: bool) -> Function:
    from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
    from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer
    from redis import Redis

    warnings.simplefilter("ignore")
    store = CachePersistenceLayer(
        client=Redis.from_url(NOBODY_LISTENS if away else redis, decode_responses=True)
    )
    if fails:
        once_failing(store, "_update_record", ConnectionError("lost"))
    # No payload validation: its Redis layer drops the hash at completion, so every true retry would be refused.
    config = IdempotencyConfig(event_key_jmespath="id")
    protect = idempotent_function(data_keyword_argument="order", config=config, persistence_store=store)
    protected = protect(function)
    return lambda order: protected(order=order)


def dbos(function: Function, folder: str, redis: str, away: bool, fails: bool) -> Function:
    from dbos import DBOS, SetWorkflowID

    if fails:
        raise NotTried("it records each step over a connection of its own, which nothing here reaches")
    database = f"sqlite:///{folder}/{'missing/' if away else ''}dbos.db"
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    DBOS(config={"name": "charges", "system_database_url": database, "run_admin_server": False})
    workflow = DBOS.workflow()(DBOS.step()(function))
    DBOS.launch()

    def send(order: dict[str, Any]) -> Any:
        with SetWorkflowID(order["id"]):
            return workflow(order)

    return send


def once_failing(store: Any, verb: str, error: Exception) -> None:
    """The first call of a store's verb fails, as where a connection is cut."""
    real = getattr(store, verb)
    failures = [error]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*args, **kwargs)

    async def failing_later(*args: Any, **kwargs: Any) -> Any:
        if failures:
            raise failures.pop()
        return await real(*args, **kwargs)

    setattr(store, verb, failing_later if inspect.iscoroutinefunction(real) else failing)


PROTECT: dict[str, Callable[[Function, str, str, bool, bool], Function]] = {
    "bare": bare,
    "idemcore": idemcore,
    "idemkit": idemkit,
    "Powertools": powertools,
    "DBOS": dbos,
}
"""By name; the Redis of the peers is emptied before each case."""
