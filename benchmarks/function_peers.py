"""Other libraries that make a function's call happen once, each as its own documentation has it used."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.function_subjects import (
    Receipt,
    always,
    caller,
    charge_invoice,
    charge_order,
    fresh,
    model_caller,
)
from benchmarks.harness import Contender


def idemkit() -> list[Contender]:
    from idemkit import InMemoryBackend, MethodConfig, idempotent_sync

    def decorated() -> Callable[..., Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            backend = InMemoryBackend(max_size=1_000_000)
            return idempotent_sync(backend=backend, config=MethodConfig(key_fields=["order"]))(charge_order)

    return [
        Contender("idemkit: new, scalars", caller(decorated(), fresh)),
        Contender("idemkit: replay, scalars", caller(decorated(), always())),
    ]


def powertools() -> list[Contender]:
    from aws_lambda_powertools.utilities.idempotency import idempotent_function
    from aws_lambda_powertools.utilities.idempotency.serialization.pydantic import PydanticSerializer

    from benchmarks.powertools_layer import InMemory

    def by_order() -> Callable[..., Any]:
        layer = InMemory()
        decorated: Any = idempotent_function(data_keyword_argument="order", persistence_store=layer)(
            charge_order
        )
        return lambda order, amount: decorated(order=order, amount=amount)

    def by_invoice() -> Callable[..., Any]:
        decorated: Any = idempotent_function(
            data_keyword_argument="invoice",
            persistence_store=InMemory(),
            output_serializer=PydanticSerializer(model=Receipt),
        )(charge_invoice)
        return lambda invoice: decorated(invoice=invoice)

    return [
        Contender("Powertools: new, scalars", caller(by_order(), fresh)),
        Contender("Powertools: replay, scalars", caller(by_order(), always())),
        Contender("Powertools: new, pydantic", model_caller(by_invoice(), fresh)),
        Contender("Powertools: replay, pydantic", model_caller(by_invoice(), always())),
    ]


def justonce(path: str) -> list[Contender]:
    """On SQLite: it has no store in memory of its own."""
    from justonce import Idempotent, idempotent, operation_key
    from justonce.stores import SqliteStore

    order = idempotent(
        key=lambda order, amount: operation_key("charge", order),
        payload=lambda order, amount: {"order": order, "amount": amount},
        engine=Idempotent(SqliteStore(path)),
    )(charge_order)
    return [
        Contender("justonce: new, scalars", caller(order, fresh)),
        Contender("justonce: replay, scalars", caller(order, always())),
    ]


def dbos(url: str) -> list[Contender]:
    """A workflow of one step, its id the key. What it is made for is more than this: it resumes workflows."""
    from dbos import DBOS, DBOSConfig, SetWorkflowID

    DBOS(config=DBOSConfig(name="bench", system_database_url=url, log_level="ERROR"))
    step = DBOS.step()(charge_order)

    @DBOS.workflow()
    def charge(order: str, amount: int) -> str:
        return step(order, amount)

    DBOS.launch()

    def once(order: str, amount: int) -> str:
        with SetWorkflowID(order):
            return charge(order, amount)

    return [
        Contender("DBOS: new, scalars", caller(once, fresh)),
        Contender("DBOS: replay, scalars", caller(once, always())),
    ]
