"""What an operator does about an outcome that is unknown: looks at the network's ledger, books, settles."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from typing import Literal

from ledger import Charge, lines
from stack import Stack

from idemcore import Engine, identify
from idemcore.http import kept_answer
from idemcore.record import Answer, Record


def settle(stack: Stack, charge: Charge, *, key: str) -> str:
    """Settles one operation by what the ledger shows, and says how."""
    idem = Engine(f"sqlite:///{stack.database}", observers=())  # the note of this scene says it
    identity = identify(charge.merchant, "http", key)
    record = idem.get(identity)
    if not isinstance(record, Record):
        return "there is no record to settle"
    verdict: Answer | Literal["not_done"] = "not_done"
    made = [line["id"] for line in lines(stack.ledger) if line["reference"] == charge.reference]
    if made:
        verdict = answer_for(book(stack, charge, made[0]))
    applied = idem.resolve(identity, record.token, verdict)
    outcome = "it was charged: booked, and answered for" if made else "it was not charged: may run again"
    return outcome if applied else "the record has moved on: look again"


def book(stack: Stack, charge: Charge, charge_id: str) -> dict[str, str | int]:
    """The row that the worker did not live to write."""
    payment: dict[str, str | int] = {
        "id": charge_id.replace("ch_", "pay_"),
        "tenant_id": charge.merchant,
        "reference": charge.reference,
        "amount": charge.amount,
        "charge_id": charge_id,
        "created_at": datetime.now(UTC).isoformat(),
    }
    books = sqlite3.connect(stack.database, timeout=5)
    with books:
        names, values = ", ".join(payment), ", ".join(f":{name}" for name in payment)
        books.execute(f"INSERT INTO payments ({names}) VALUES ({values})", payment)  # noqa: S608  # our own names
    books.close()
    return payment


def answer_for(payment: dict[str, str | int]) -> Answer:
    """What the client of the lost request is to be told."""
    headers = [("Content-Type", "application/json"), ("Location", f"/payments/{payment['id']}")]
    body = json.dumps(payment).encode()
    return kept_answer("201 CREATED", headers, body)
