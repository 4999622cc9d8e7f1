"""Workers of two versions on one table: what `docs/upgrading.md` promises to whoever deploys in turns."""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, create_engine

from idemcore import ConfigurationError, Engine, LeaseLost, RecordUnreadable, Replay, events, identify
from idemcore.record import UnreadableRecord
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.core.engine_fixtures import TEN_EUROS
from tests.stores.services import POSTGRES_URL

ASKED: dict[str, Any] = {"scope": "t", "operation": "charge", "fingerprint": TEN_EUROS}


class Deployed:
    """An older version's engine, and a way to write as a newer one does."""

    def __init__(self, url: str) -> None:
        self.name = f"idem_upgrading_{os.getpid()}"
        self.seen: list[events.Event] = []
        self.store = SQLAlchemyStore(url, table=idempotency_table(MetaData(), name=self.name))
        self.store.create_schema()
        self.idem = Engine(self.store, observers=[self.seen.append])
        self.database = create_engine(url)

    def sql(self, statement: str) -> list[Any]:
        with self.database.begin() as connection:
            result = connection.exec_driver_sql(statement.format(self.name))
            return list(result) if result.returns_rows else []

    def upgrade(self, key: str) -> None:
        """What another version has made of a row; by its format alone nobody else can tell what it says."""
        self.sql(f"UPDATE {{}} SET format = 2 WHERE key = '{key}'")

    def rows(self) -> list[Any]:
        return self.sql("SELECT * FROM {} ORDER BY key")

    def close(self) -> None:
        self.idem.close()
        self.store.close()
        self.sql("DROP TABLE {}")
        self.database.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def deployed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployed]:
    """On a table of its own."""
    if request.param == "postgresql" and not POSTGRES_URL:
        pytest.skip("IDEMCORE_TEST_POSTGRES_URL is not set")
    url = f"sqlite:///{tmp_path / 'records.db'}" if request.param == "sqlite" else POSTGRES_URL
    deployed = Deployed(url)
    yield deployed
    deployed.close()


def test_a_row_of_a_newer_version_is_refused_and_left_alone(deployed: Deployed) -> None:
    """DEG: nothing runs, nothing is replayed, and not a byte changes; neighbours are served as ever."""
    idem = deployed.idem
    idem.begin(key="mine", **ASKED).complete(b"kept")  # type: ignore[union-attr]  # an Attempt
    idem.begin(key="done", **ASKED).complete(b"receipt")  # type: ignore[union-attr]  # an Attempt
    late = idem.begin(key="late", **ASKED)
    seen = {key: idem.get(identify("t", "charge", key)) for key in ("done", "late")}
    for key in seen:
        deployed.upgrade(key)
    before = deployed.rows()
    for key in seen:
        with pytest.raises(RecordUnreadable):
            idem.begin(key=key, **ASKED)
    with pytest.raises(LeaseLost):
        late.renew()  # type: ignore[union-attr]  # an Attempt
    late.complete(b"late")  # type: ignore[union-attr]  # an Attempt
    for key, record in seen.items():
        identity = identify("t", "charge", key)
        assert not idem.resolve(identity, record.token, "done")  # type: ignore[union-attr]  # a Record
        assert not idem.forget(identity, record.token)  # type: ignore[union-attr]  # a Record
        assert isinstance(idem.get(identity), UnreadableRecord)
    assert idem.sweep().removed == 0
    idem.create_schema()
    assert deployed.rows() == before
    assert isinstance(idem.begin(key="mine", **ASKED), Replay)
    assert [type(event) for event in deployed.seen].count(events.RecordDamaged) == 2


def test_past_its_retention_it_is_refused_until_a_sweep_removes_it(deployed: Deployed) -> None:
    """An older worker does not take it for forgotten, for what expires_at means is the newer one's to say."""
    deployed.idem.begin(key="k", **ASKED).complete(b"receipt")  # type: ignore[union-attr]  # an Attempt
    deployed.upgrade("k")
    deployed.sql("UPDATE {} SET expires_at = 1")
    with pytest.raises(RecordUnreadable):
        deployed.idem.begin(key="k", **ASKED)
    assert deployed.idem.sweep().removed == 1
    assert deployed.rows() == []


def test_a_table_that_a_newer_version_has_widened_serves_an_older_one(deployed: Deployed) -> None:
    """So the migration comes first and the workers one by one."""
    deployed.sql("ALTER TABLE {} ADD COLUMN later TEXT")
    deployed.sql("ALTER TABLE {} ADD COLUMN sooner INTEGER NOT NULL DEFAULT 0")
    deployed.idem.check()
    deployed.idem.begin(key="k", **ASKED).complete(b"receipt")  # type: ignore[union-attr]  # an Attempt
    assert isinstance(deployed.idem.begin(key="k", **ASKED), Replay)


def test_a_table_of_an_older_version_fails_at_the_start(deployed: Deployed) -> None:
    """And not at the first payment: `check` asks the database to prepare every statement."""
    deployed.sql("ALTER TABLE {} DROP COLUMN reason")
    url = deployed.database.url
    started = SQLAlchemyStore(url, table=idempotency_table(MetaData(), name=deployed.name))
    with pytest.raises(ConfigurationError, match="not as this version needs it"):
        started.check()
    started.close()
