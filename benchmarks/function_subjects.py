"""What the decorated functions of `benchmarks.functions` do, and who calls them: the same for all."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pydantic import BaseModel


class Invoice(BaseModel):
    id: str
    customer: str
    currency: str
    amount: Decimal


class Receipt(BaseModel):
    invoice_id: str
    reference: str
    amount: Decimal


def charge_order(order: str, amount: int) -> str:
    return "receipt"


def charge_invoice(invoice: Invoice) -> Receipt:
    return Receipt(invoice_id=invoice.id, reference="R-1", amount=invoice.amount)


def fresh() -> str:
    return str(uuid.uuid4())


def always() -> Callable[[], str]:
    kept = fresh()

    def key() -> str:
        fresh()  # a replay's key costs as much to make as a new one's
        return kept

    return key


def caller(function: Callable[..., Any], key: Callable[[], str]) -> Callable[[int], None]:
    """Calls with an order; the result is looked at, so nothing can be fast by being wrong."""

    def run(calls: int) -> None:
        for _ in range(calls):
            assert function(key(), 10) == "receipt"

    return run


def model_caller(function: Callable[..., Any], key: Callable[[], str]) -> Callable[[int], None]:
    """Likewise with an invoice, which is made once: making models is no part of the question."""
    invoice = Invoice(id="", customer="C-77", currency="EUR", amount=Decimal("12.50"))

    def run(calls: int) -> None:
        for _ in range(calls):
            invoice.id = key()
            assert function(invoice).reference == "R-1"

    return run
