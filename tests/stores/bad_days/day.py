"""A payment over a store that may fail, and a ledger outside of the library that has the last word."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from sqlalchemy import MetaData

from idemcore import Attempt, Engine, Policy, Replay, fingerprint, identify
from idemcore.events import Event
from idemcore.identity import Identity
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.stores.network import Network
from tests.stores.private_postgres import PrivatePostgres
from tests.stores.server_table import earlier

_numbers = itertools.count()


def nothing() -> None:
    """What happens on a good day."""


def identity_of(key: str) -> Identity:
    return identify("tenant", "charge", key)


class Day:
    """One table on the private server, one engine whose store reaches it through the network."""

    def __init__(self, server: PrivatePostgres, net: Network, *, url: str = "") -> None:
        self.server, self.net = server, net
        self.table = f"idem_{next(_numbers)}"
        self.events: list[Event] = []
        self.ledger: list[str] = []
        self.now = 0.0
        self.url = url or server.url(port=net.port)
        self.direct = self.store_at(server.url())
        self.direct.create_schema()
        self.store = self.store_at(self.url)
        self.idem = Engine(self.store, observers=[self.events.append], monotonic=lambda: self.now)

    def store_at(self, url: str) -> SQLAlchemyStore:
        """A store on this day's table."""
        return SQLAlchemyStore(url, table=idempotency_table(MetaData(), name=self.table))

    def pay(
        self, key: str = "k-1", *, on_effect: Callable[[], Any] = nothing, policy: Policy | None = None
    ) -> str:
        """One payment, as its caller sees it; `on_effect` is what happens right after the effect."""
        begun = self.idem.begin(
            scope="tenant", operation="charge", key=key, fingerprint=fingerprint({"key": key}), policy=policy
        )
        if isinstance(begun, Replay):
            return f"replay {begun.outcome.body.decode()}"
        assert isinstance(begun, Attempt)
        with begun as attempt:
            self.ledger.append(key)
            on_effect()
            answer = f"paid {len(self.ledger)}"
            attempt.complete(answer.encode())
        return answer

    def names(self) -> list[str]:
        """What the engine has said so far, the usual left out."""
        usual = ("Started", "Settled", "Replayed", "Refused")
        return [name for event in self.events if (name := type(event).__name__) not in usual]

    def later(self, seconds: float) -> None:
        """Time passes, for this process and for the records; what is due is done."""
        self.now += seconds
        self.execute(f"UPDATE {self.table} SET {earlier(seconds)}")
        self.idem.keeper.step()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Past the network."""
        with self.server.connect() as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload] # our own texts
            return cursor.fetchall() if cursor.description else []

    def end(self) -> None:
        """Leaves nothing behind."""
        self.net.mend()
        self.net.silent, self.net.delay = False, 0.0
        self.idem.close()
        self.store.close()
        self.direct.close()
        self.execute(f"DROP TABLE {self.table}")
