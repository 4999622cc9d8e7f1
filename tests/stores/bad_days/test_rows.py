"""A row is damaged, or a newer version wrote it: its operation neither runs nor is anything made up."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from idemcore import Attempt, Engine, RecordUnreadable, fingerprint
from idemcore.cli.main import commands
from tests.stores.bad_days.day import Day

DAMAGES = {
    "a newer format": "format = 2",
    "a newer state": "state = 'pondered'",
    "an unknown kind": "kind = 'pickled'",
    "no body": "body = NULL",
    "no meta": "meta = NULL",
    "meta that is no JSON": "meta = '{'",
    "a time beyond any calendar": "completed_at = 9223372036854775807",
}


def pay(idem: Engine, ledger: list[str]) -> None:
    begun = idem.begin(scope="t", operation="charge", key="k", fingerprint=fingerprint({"amount": 10}))
    assert isinstance(begun, Attempt)
    with begun as attempt:
        ledger.append("charged")
        attempt.complete(b"done")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_row_in_postgresql_runs_nothing(day: Day, damage: str) -> None:
    """DEG-01, SEC-02: RecordUnreadable, again and again; an operator sees it in the list."""
    assert day.pay() == "paid 1"
    day.execute(f"UPDATE {day.table} SET {damage}")  # noqa: S608 - our own names
    for _ in range(2):
        with pytest.raises(RecordUnreadable):
            day.pay()
    assert day.ledger == ["k-1"]
    assert day.names() == ["RecordDamaged"]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_row_in_sqlite_runs_nothing(tmp_path: Path, damage: str) -> None:
    """DEG-01, SEC-02: the same there; and the operator's list shows it and raises nothing."""
    path = tmp_path / "records.db"
    idem = Engine(f"sqlite:///{path}")
    idem.create_schema()
    ledger: list[str] = []
    pay(idem, ledger)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE idempotency_records SET {damage}")  # noqa: S608 - our own names
    for _ in range(2):
        with pytest.raises(RecordUnreadable):
            pay(idem, ledger)
    assert ledger == ["charged"]
    listed = CliRunner().invoke(commands, ["ls", "--store", f"sqlite:///{path}", "--json"])
    assert listed.exit_code == 0
    assert len(json.loads(listed.stdout)) == 1
    idem.close()
