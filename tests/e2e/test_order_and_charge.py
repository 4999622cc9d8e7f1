"""The page's shop is killed between any two of its steps; the orders and the bank's own ledger are counted."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "order-and-charge.md"
BANK, SHOP = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[:2]

CLIENT = """
import json, os, sys
import shop

def dying(step):
    before, _, name = step.partition(" ")
    does = getattr(shop, name)
    def steps(*args):
        if before == "after":
            does(*args)
        os._exit(9)
    setattr(shop, name, steps)

shop.idem.create_schema()
shop.orders.metadata.create_all(shop.database)
if sys.argv[1]:
    dying(sys.argv[1])
sent = {"json": {"amount": int(sys.argv[2])}, "headers": {"Idempotency-Key": "k"}}
answer = shop.app.test_client().post("/orders", **sent)
print(json.dumps([answer.status_code, answer.get_json()]))
"""


class Folder:
    """The page's files, and one client after another, each a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "shop.py").write_text(BANK + SHOP)
        (path / "client.py").write_text(CLIENT)

    def order(self, dies: str = "", amount: int = 10) -> Any:
        """What a client is told; None where the shop died at this step."""
        command = [sys.executable, "client.py", dies, str(amount)]
        ran = subprocess.run(command, cwd=self.path, capture_output=True, text=True, timeout=100, check=False)
        assert ran.returncode == (9 if dies else 0), ran.stderr
        return json.loads(ran.stdout) if not dies else None

    def let_the_lease_end(self) -> None:
        with closing(sqlite3.connect(self.path / "shop.db")) as database, database:
            database.execute("UPDATE idempotency_records SET lease_until = 1")

    @property
    def orders(self) -> list[str]:
        return self._all("shop.db", "SELECT state FROM orders")

    @property
    def charges(self) -> list[int]:
        return self._all("bank.db", "SELECT amount FROM charges")

    def _all(self, name: str, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path / name)) as database:
            try:
                return [row[0] for row in database.execute(statement)]
            except sqlite3.OperationalError:  # nobody has made the table yet
                return []


@pytest.mark.parametrize(
    ("dies", "orders", "charges"),
    [
        ("before noted", [], []),
        ("after noted", ["pending"], []),
        ("before charge", ["pending"], []),
        ("after charge", ["pending"], [10]),
    ],
)
def test_killed_before_its_last_commit_it_is_finished_by_a_retry(
    tmp_path: Path, dies: str, orders: list[str], charges: list[int]
) -> None:
    """The retry takes up what it finds: one order, one charge."""
    folder = Folder(tmp_path)
    folder.order(dies)
    assert (folder.orders, folder.charges) == (orders, charges)
    assert folder.order()[1]["code"] == "request_in_progress"
    folder.let_the_lease_end()
    assert folder.order() == folder.order() == [201, {"order": 1}]
    assert (folder.orders, folder.charges) == (["paid"], [10])


def test_killed_after_its_last_commit_it_never_runs_again(tmp_path: Path) -> None:
    """The order is there; its retry is told to look it up."""
    folder = Folder(tmp_path)
    folder.order("before told")
    folder.let_the_lease_end()
    for _ in range(2):
        status, told = folder.order()
        assert (status, told["code"]) == (422, "response_not_replayable")
    assert (folder.orders, folder.charges) == (["paid"], [10])


@pytest.mark.parametrize(
    ("amount", "status", "state", "charges"), [(10, 201, "paid", [10]), (5000, 402, "declined", [])]
)
def test_the_row_is_remembered_for_longer_than_the_record(
    tmp_path: Path, amount: int, status: int, state: str, charges: list[int]
) -> None:
    """Past the retention the same key is a new operation, and the order is the old one or another's."""
    folder = Folder(tmp_path)
    first = folder.order(amount=amount)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("DELETE FROM idempotency_records")
    assert folder.order(amount=11)[0] == 409
    assert folder.order(amount=amount) == first
    assert first[0] == status
    assert (folder.orders, folder.charges) == ([state], charges)
