"""Sends the payouts that are due, a thousand of them; killed in the middle, it is simply run again.

Run as `python payouts.py DATABASE NETWORK COUNT`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
from pydantic import BaseModel

from idemcore import SINGLE_TENANT, Engine, current_attempt
from idemcore.stores.sql import SQLAlchemyStore
from idemcore_function import idempotent

DATABASE, NETWORK, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])

idem = Engine(SQLAlchemyStore(f"sqlite:///{DATABASE}", durable=True))
idem.create_schema()
network = httpx.Client(base_url=NETWORK, timeout=10)


class Payout(BaseModel):
    id: str
    amount: int
    card: str


@idempotent(
    idem,
    key="{payout.id}",
    scope=SINGLE_TENANT,
    namespace="payouts.send",
    lease=timedelta(seconds=2),
    wait=timedelta(seconds=10),  # for the claims of a run that was killed
)
def send(payout: Payout) -> str:
    """Sends one payout and returns the network's id of it."""
    answer = network.post(
        "/charges",
        json={"merchant": "payouts", "reference": payout.id, "amount": payout.amount, "card": payout.card},
        headers={"Idempotency-Key": current_attempt().child_key("send")},
    )
    return str(answer.raise_for_status().json()["id"])


def due() -> Iterator[Payout]:
    for number in range(1, COUNT + 1):
        yield Payout(id=f"payout-{number:04}", amount=1000 + number, card="4242424242424242")


if __name__ == "__main__":
    with ThreadPoolExecutor(4) as pool:
        sent = set(pool.map(send, due()))
    print(f"{len(sent):,} payouts sent")
