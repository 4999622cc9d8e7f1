"""A worker process that makes one order in one transaction with its record, and dies where it is told.

    python ordering_worker.py URL ORDERS RECORDS POINT

Points: `joined` (order and mark are written and not committed), `committed` (before the record is completed),
`completed` (once the answer is written, before `complete` returns).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine
from sqlalchemy.orm import Session

from idemcore import Attempt, Engine
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, orders: str, records: str, point: str) -> None:
    metadata = MetaData()
    table = Table(orders, metadata, Column("id", Integer, primary_key=True), Column("reference", String(100)))
    store = SQLAlchemyStore(url, table=idempotency_table(metadata, name=records))
    begun = Engine(store).begin(scope="t", operation="order", key="k", fingerprint="v1.test:1")
    assert isinstance(begun, Attempt)
    with begun as attempt, Session(create_engine(url)) as session:
        session.execute(table.insert().values(reference="k"))
        attempt.join(session)
        if point == "joined":
            die()
        session.commit()
        if point == "committed":
            die()
        attempt.complete(b"order 1")
        die()


if __name__ == "__main__":
    main(*sys.argv[1:])
