"""Sends the payouts of a CSV file, each once: `python nightly_payouts.py payouts.csv database.db`.

Cron may start it twice, somebody may run it by hand beside that, the machine may die in the middle of it:
run it again, and it goes on. It ends with 0 when every payout is sent, and with 1 when one is not.
"""

from __future__ import annotations

import csv
import json
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

from idemcore import Engine, current_attempt
from idemcore_function import idempotent, run_batch

idem = Engine()  # gets its database below


class Payout(BaseModel):
    id: str
    account: str
    amount: Decimal


class Sent(BaseModel):
    reference: str
    amount: Decimal


class BankTimeout(Exception):
    """The bank did not answer, so nobody knows whether it sent the money."""


@idempotent(
    idem,
    key="{payout.id}",
    namespace="payouts.send",  # so the function may be renamed and moved
    unknown=(BankTimeout,),
    retention=timedelta(days=90),
)
def send(payout: Payout) -> Sent:
    return transfer(payout, idempotency_key=current_attempt().child_key("bank"))


def transfer(payout: Payout, idempotency_key: str) -> Sent:
    """Stands for the bank, which takes a key of its own and sends once under each."""
    if payout.account == "does not answer":
        raise BankTimeout
    return Sent(reference=f"T-{idempotency_key[:8]}", amount=payout.amount)


def main(payouts: Path, database: Path) -> int:
    idem.bind(f"sqlite:///{database}")
    idem.create_schema()
    with payouts.open(newline="") as file:
        due = [Payout.model_validate(row) for row in csv.DictReader(file)]
    report = run_batch(send, due, workers=8, max_failures=20)
    print(json.dumps(report.as_dict()))
    return 0 if report.complete else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
