"""What a user's type checker makes of decorated functions. Not run: mypy and pyright read it (`make check`)."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import assert_type

from pydantic import BaseModel

from idemcore import ALL_ARGUMENTS, SINGLE_TENANT, Canonicalizer, Engine, Policy, Result
from idemcore.codec import JSON
from idemcore.identity import Identity
from idemcore_function import Report, forget, idempotent, key_of, outcome, run_batch

idem = Engine("memory://")


class Invoice(BaseModel):
    id: str
    tenant_id: str


class Receipt(BaseModel):
    amount: Decimal


@idempotent(
    idem,
    key="{invoice.id}",
    scope="{invoice.tenant_id}",
    namespace="billing.charge",
    exclude={"session"},
    keep=(ValueError,),
    unknown=(TimeoutError,),
    lease=timedelta(seconds=5),
)
def charge(invoice: Invoice, session: object, *, note: str = "") -> Receipt:
    return Receipt(amount=Decimal(1))


invoice = Invoice(id="1", tenant_id="t")

# The decorated function has the parameters and the result of the plain one.
assert_type(charge(invoice, object(), note="x"), Receipt)
assert_type(outcome(charge)(invoice, object()), Result[Receipt])
assert_type(outcome(charge)(invoice, object()).value, Receipt)
assert_type(outcome(charge)(invoice, object()).replayed, bool)
assert_type(key_of(charge)(invoice, object()), Identity)
assert_type(forget(charge)(invoice, object()), bool)
charge(invoice)  # type: ignore[call-arg]
charge("1", object())  # type: ignore[arg-type]
charge(invoice, object(), remark="x")  # type: ignore[call-arg]
outcome(charge)(invoice)  # type: ignore[call-arg]


class Account:
    id: str = "a"

    @idempotent(idem, key="{self.id}-{n}")
    def pay(self, n: int) -> int:
        return n

    @classmethod
    @idempotent(idem, key="{n}", exclude={"cls"})
    def open(cls, n: int) -> str:
        return str(n)

    @staticmethod
    @idempotent(idem, key="{n}")
    def close(n: int) -> None: ...


assert_type(Account().pay(1), int)
assert_type(Account.open(1), str)
assert_type(outcome(Account().pay)(1), Result[int])
assert_type(outcome(Account.open)(1), Result[str])
Account().pay("1")  # type: ignore[arg-type]


# So do partials of it; and what Celery's `app.task` is given is a plain function like any other.
assert_type(partial(charge, invoice)(object()), Receipt)
assert_type(partial(Account().pay, 1)(), int)
assert_type(run_batch(partial(charge, session=object()), [invoice]), Report[Invoice, Receipt])


def task(function: Callable[[Invoice, object], Receipt]) -> Callable[[Invoice, object], Receipt]:
    return function


assert_type(task(charge)(invoice, object()), Receipt)


# A rule of one's own, and the ones before it.
@idempotent(idem, key="{n}", accept=[Canonicalizer()])
def by_new_rule(n: int) -> int:
    return n


@idempotent(idem, key="{n}", canonicalizer="exact")  # type: ignore[arg-type]
def by_no_rule(n: int) -> int:
    return n


assert_type(by_new_rule(1), int)


# A key is required; each kind of key and scope is taken.
@idempotent(idem, scope=SINGLE_TENANT)  # type: ignore[call-arg]
def keyless(n: int) -> int:
    return n


@idempotent(idem, key=lambda n: f"n-{n}", scope=lambda n: ("eu", n), codec=JSON, policy=Policy())
def by_callable(n: int) -> int:
    return n


@idempotent(idem, key=ALL_ARGUMENTS, scope=7, on_abandoned="block", unannotated="refuse")
def by_arguments(n: int) -> int:
    return n


@idempotent(idem, key="{n}", on_abandoned="retry")  # type: ignore[arg-type]
def misspelt(n: int) -> int:
    return n


assert_type(by_callable(1), int)
assert_type(by_arguments(n=1), int)

# A batch is typed by its items and by what the function returns for each.
assert_type(run_batch(by_callable, [1, 2]), Report[int, int])
assert_type([item.value for item in run_batch(by_callable, range(3)).items], list[int | None])
run_batch(by_callable, ["1"])  # type: ignore[arg-type]
