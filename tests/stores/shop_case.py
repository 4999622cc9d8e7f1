"""A shop whose orders and records share a database, SQLite or PostgreSQL: the orders are the ledger."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, func, insert, select, update
from sqlalchemy.orm import Session

from idemcore import Attempt, Engine, Replay
from idemcore.events import Event
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.stores.services import POSTGRES_URL

DATABASES = ["sqlite", *(["postgresql"] if POSTGRES_URL else [])]
LEASE = 31_000_000

_numbers = count()


class Shop:
    """Tables of its own, an engine of the caller's beside the store's own, and an `Engine`."""

    def __init__(self, database: str, folder: Path) -> None:
        suffix = f"{os.getpid()}_{next(_numbers)}"
        self.url = f"sqlite:///{folder / 'shop.db'}" if database == "sqlite" else POSTGRES_URL
        self.metadata = MetaData()
        self.orders = Table(
            f"orders_{suffix}",
            self.metadata,
            Column("id", Integer, primary_key=True),
            Column("reference", String(100), nullable=False),
        )
        self.records = idempotency_table(self.metadata, name=f"records_{suffix}")
        self.store = SQLAlchemyStore(self.url, table=self.records)
        self.store.create_schema()  # and with it write-ahead mode, before anybody else has the file open
        self.engine = create_engine(self.url, pool_size=10)
        self.metadata.create_all(self.engine)
        self.events: list[Event] = []
        self.idem = Engine(self.store, observers=[self.events.append])

    def close(self) -> None:
        self.idem.close()
        self.store.close()
        self.metadata.drop_all(self.engine)
        self.engine.dispose()

    def begin(self, key: str = "k", **changes: Any) -> Attempt | Replay:
        return self.idem.begin(scope="t", operation="order", key=key, fingerprint="v1.test:1", **changes)

    def attempt(self, key: str = "k", **changes: Any) -> Attempt:
        begun = self.begin(key, **changes)
        assert isinstance(begun, Attempt)
        return begun

    def buy(self, session: Session, reference: str = "k") -> None:
        session.execute(insert(self.orders).values(reference=reference))

    def bought(self, reference: str = "k") -> int:
        mine = select(func.count()).select_from(self.orders).where(self.orders.c.reference == reference)
        with self.engine.connect() as connection:
            return connection.execute(mine).scalar_one()

    def state(self, key: str = "k") -> str:
        with self.engine.connect() as connection:
            found = connection.execute(select(self.records.c.state).where(self.records.c.key == key))
            return found.scalar_one()

    def leases_over(self) -> None:
        """Every claim reads as if its lease had passed."""
        with self.engine.begin() as connection:
            connection.execute(
                update(self.records)
                .where(self.records.c.state == "claimed")
                .values(lease_until=self.records.c.lease_until - LEASE)
            )
