"""A payments API: takes each payment once, however often it is asked to.

Run it with any WSGI server, `gunicorn app:app`; settings come from PAYMENTS_* in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal

import httpx
from flask import Flask, abort, g, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateTable

from idemcore import Engine, current_attempt
from idemcore.stores.sql import SQLAlchemyStore
from idemcore_flask import Idempotency

app = Flask(__name__)
app.config.from_prefixed_env("PAYMENTS")

database = create_engine(f"sqlite:///{app.config['DATABASE']}", poolclass=NullPool)
payments = Table(
    "payments",
    MetaData(),
    Column("id", String, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("reference", String, nullable=False),
    Column("amount", Integer, nullable=False),
    Column("charge_id", String, nullable=False, unique=True),
    Column("created_at", String, nullable=False),
)
orders = Table(
    "orders",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("reference", String, nullable=False),
    Column("amount", Integer, nullable=False),
)
with database.begin() as connection:
    connection.execute(CreateTable(payments, if_not_exists=True))
    connection.execute(CreateTable(orders, if_not_exists=True))
network = httpx.Client(base_url=app.config["NETWORK"], timeout=10)

# durable: where money is concerned, a record outlives a power cut, not just a crash.
idem = Engine(SQLAlchemyStore(f"sqlite:///{app.config['DATABASE']}", durable=True))
idem.create_schema()
idempotency = Idempotency(
    app, engine=idem, scope=lambda: g.tenant_id, lease=timedelta(seconds=app.config.get("LEASE", 30))
)


class PaymentRequest(BaseModel):
    amount: Annotated[Decimal, Field(gt=0, max_digits=9, decimal_places=2)]
    currency: Literal["EUR"] = "EUR"
    card: Annotated[str, Field(pattern=r"^\d{16}$")]
    reference: Annotated[str, Field(max_length=64)]


class CardDeclined(Exception):
    pass


@app.before_request
def authenticate() -> None:
    bearer = request.authorization.token if request.authorization else None
    g.tenant_id = app.config["TENANTS"].get(bearer) or abort(401)


@app.post("/payments")
@idempotency.required
def create_payment() -> ResponseReturnValue:
    # The card network knows keys of its own: whoever takes over after a crash asks it under the same one.
    attempt = current_attempt(None)  # None where the library is switched off
    return pay({"Idempotency-Key": attempt.child_key("charge")} if attempt is not None else {})


@app.post("/transfers")
@idempotency.required(on_abandoned="block")
def create_transfer() -> ResponseReturnValue:
    # The bank knows no keys: a transfer that may have gone out is never sent again without a person's word.
    return pay({})


@app.post("/orders")
@idempotency.required
def create_order() -> ResponseReturnValue:
    # On account: the order and its record are committed together, so there is one, whatever dies after that.
    wanted = PaymentRequest.model_validate_json(request.get_data())
    order = {"tenant_id": g.tenant_id, "reference": wanted.reference, "amount": int(wanted.amount * 100)}
    with database.begin() as connection:
        number = connection.execute(orders.insert().values(order)).inserted_primary_key
        if (attempt := current_attempt(None)) is not None:
            attempt.join(connection)
    ask("/notices", wanted)
    return {**order, "id": number[0] if number else None}, 201


def pay(headers: dict[str, str]) -> ResponseReturnValue:
    wanted = PaymentRequest.model_validate_json(request.get_data())
    charge = charge_for(wanted, headers)
    payment = {
        "id": charge["id"].replace("ch_", "pay_"),
        "tenant_id": g.tenant_id,
        "reference": wanted.reference,
        "amount": charge["amount"],
        "charge_id": charge["id"],
        "created_at": datetime.now(UTC).isoformat(),
    }
    with database.begin() as connection:
        # An attempt that was cut off may have booked this charge already.
        connection.execute(insert(payments).values(payment).on_conflict_do_nothing())
    return payment, 201, {"Location": url_for("show_payment", payment_id=payment["id"])}


def charge_for(wanted: PaymentRequest, headers: dict[str, str]) -> dict[str, Any]:
    answer = ask("/charges", wanted, headers)
    if answer.status_code == 402:
        raise CardDeclined
    charge: dict[str, Any] = answer.raise_for_status().json()
    return charge


def ask(path: str, wanted: PaymentRequest, headers: Mapping[str, str] = MappingProxyType({})) -> httpx.Response:
    return network.post(
        path,
        json={
            "merchant": g.tenant_id,
            "reference": wanted.reference,
            "amount": int(wanted.amount * 100),
            "card": wanted.card,
        },
        headers={"User-Agent": f"payments-app/1.0 (process {os.getpid()})", **headers},
    )


@app.get("/payments/<payment_id>")
def show_payment(payment_id: str) -> ResponseReturnValue:
    mine = (payments.c.id == payment_id) & (payments.c.tenant_id == g.tenant_id)
    with database.connect() as connection:
        row = connection.execute(select(payments).where(mine)).first() or abort(404)
    return dict(row._mapping)


@app.errorhandler(CardDeclined)
def card_declined(_: CardDeclined) -> ResponseReturnValue:
    return {"error": "The card was declined."}, 402


@app.errorhandler(ValidationError)
def not_a_payment(error: ValidationError) -> ResponseReturnValue:
    return {"errors": error.errors(include_url=False, include_input=False, include_context=False)}, 400
