"""What a scene stands on: it sends, says what must come back, and says what must be charged."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from client import Answer, Client, Exchange
from ledger import Charge, charges, differences, euros, lines, ordered, times
from network import GOOD
from stack import TENANTS, Stack

TOKENS = {tenant: token for token, tenant in TENANTS.items()}


@dataclass(frozen=True)
class Order:
    """A payment that somebody means to make once."""

    reference: str
    amount: str
    card: str = GOOD

    @property
    def body(self) -> str:
        return f'{{"amount": {self.amount}, "card": "{self.card}", "reference": "{self.reference}"}}'

    def charge(self, tenant: str = "acme") -> Charge:
        return Charge(tenant, self.reference, int(Decimal(self.amount) * 100))


@dataclass
class Outcome:
    """One scene, played: a line for the terminal, a time line for the report."""

    name: str
    title: str
    sent: str = ""
    came_back: str = ""
    charged: str = ""
    wrong: list[str] = field(default_factory=list)
    began_at: float = 0.0
    ended_at: float = 0.0
    exchanges: list[Exchange] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.wrong


Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


class Stage:
    """One scene's view of a running stack."""

    def __init__(self, stack: Stack, name: str, title: str, progress: Progress) -> None:
        self.stack = stack
        self.outcome = Outcome(name, title, began_at=time.time())
        self.must_be_charged: Counter[Charge] = Counter()
        self.unprotected: Counter[Charge] = Counter()
        self._orders: list[Order] = []
        self._asked = 0
        self.may_ask_again = 0
        self.progress = progress
        self._client = Client(stack.proxy.port, self.outcome.exchanges.append)

    def order(self, amount: str, card: str = GOOD) -> Order:
        """An order whose reference no other scene uses, so that its charges are told apart."""
        return Order(self.outcome.name, amount, card)

    def owe(self, charge: Charge, *, asked: int = 1, unprotected: int = 1) -> None:
        """This must be charged once; without the library it would be charged `unprotected` times.

        `asked` is how often the network may be asked: more than once where it fails or dedupes.
        """
        self.must_be_charged[charge] += 1
        self.unprotected[charge] += unprotected
        self._asked += asked

    def must_order(self, order: Order) -> None:
        """This must be in the app's books once, on account: the network charges nothing."""
        self._orders.append(order)

    def must_not_charge(self, charge: Charge, *, unprotected: int = 1) -> None:
        """This must not be charged; without the library it would be, `unprotected` times."""
        self.unprotected[charge] += unprotected

    def send(self, order: Order | str, *, key: str, tenant: str = "acme", **how: Any) -> Answer:
        return self._client.send(**self._request(order, key, tenant, how))

    def send_together(self, count: int, order: Order, *, key: str) -> list[list[Answer]]:
        return self._client.send_together(count, **self._request(order, key, "acme", {}))

    def send_until_done(self, order: Order, *, key: str, **how: Any) -> list[Answer]:
        return self._client.send_until_done(**self._request(order, key, "acme", how))

    def _request(self, order: Order | str, key: str, tenant: str, how: dict[str, Any]) -> dict[str, Any]:
        body = order if isinstance(order, str) else order.body
        what = f"{' '.join(body.split())} under {key}" + (f" ({how['fault']})" if "fault" in how else "")
        return {"path": "/payments", "body": body, "token": TOKENS[tenant], "key": key, "what": what, **how}

    def note(self, text: str) -> None:
        """Something that happened and that no exchange shows."""
        self.outcome.notes.append((time.time(), text))

    def must(self, held: bool, otherwise: str) -> None:
        if not held:
            self.outcome.wrong.append(otherwise)

    def report(self, *, sent: str, came_back: str) -> None:
        self.outcome.sent = sent
        self.outcome.came_back = came_back

    def finish(self) -> Outcome:
        """Asks the ledger; what the scene itself believes counts for nothing here."""
        outcome = self.outcome
        self.stack.proxy.wait_until_quiet()
        outcome.ended_at = time.time()
        mine = {charge.reference for charge in self.unprotected}
        outcome.ledger = [line for line in lines(self.stack.ledger) if line["reference"] in mine]
        charged = Counter(
            {charge: n for charge, n in charges(self.stack.ledger).items() if charge.reference in mine}
        )
        outcome.charged = in_words(charged)
        outcome.wrong += differences(charged, self.must_be_charged)
        for order in self._orders:
            count = ordered(self.stack.database, order.reference)
            outcome.charged += f"; {count} × order of €{order.amount} in the books"
            self.must(count == 1, f"the order is in the books {times(count)}, not once")
        asked = sum(line["reference"] in mine for line in lines(self.stack.asked))
        self.must(
            self._asked <= asked <= self._asked + self.may_ask_again,
            f"the network was asked {times(asked)}, not {times(self._asked)}",
        )
        return outcome


def in_words(charged: Counter[Charge]) -> str:
    if len(charged) > 10:
        return f"{charged.total():,} times" + (", each payment once" if max(charged.values()) == 1 else "")
    amounts = Counter[int]()
    for charge, count in charged.items():
        amounts[charge.amount] += count
    return " + ".join(f"{count} × {euros(amount)}" for amount, count in amounts.items()) or "nothing"


Scene = Callable[[Stage], None]


def same(first: Answer, again: Answer) -> bool:
    """The same answer: status, Location and every byte of the body."""
    return (first.status, first.headers.get("location"), first.body) == (
        again.status,
        again.headers.get("location"),
        again.body,
    )


def reordered(order: Order, amount: str) -> str:
    """The same payment, spelled differently: members the other way round, the amount as given."""
    return json.dumps({"reference": order.reference, "card": order.card}, indent=1)[:-2] + (
        f',\n "amount":{amount}\n}}'
    )
