"""README is run: each code block as written, and the table of answers row by row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Connection, MetaData, String, Table, create_engine, event, select

from idemcore import Engine, FingerprintMismatch
from idemcore_function import idempotent

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def run_block(containing: str, **given: Any) -> dict[str, Any]:
    (block,) = (block for block in BLOCKS if containing in block)
    names: dict[str, Any] = {"__name__": "readme", **given}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - our own page
    return names


def test_every_block_is_run_by_a_test_of_this_file() -> None:
    """A new block without a test below is a promise that nobody keeps."""
    tested = ("@idempotency.required", "run_batch(", "current_attempt().join(")
    assert [sum(mark in block for mark in tested) for block in BLOCKS] == [1] * len(BLOCKS)


def test_the_flask_example_is_as_short_as_it_says() -> None:
    """Twenty lines, blank ones apart."""
    (block,) = (block for block in BLOCKS if "@idempotency.required" in block)
    assert len([line for line in block.splitlines() if line.strip()]) <= 20


def test_the_flask_example_answers_as_the_table_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KEY-01, KEY-05, CAN-01: run, replay in another spelling, refusal of another amount, no caller."""
    monkeypatch.chdir(tmp_path)
    names = run_block("@idempotency.required")
    client = names["app"].test_client()

    def send(body: str, caller: str = "secret-7") -> Any:
        headers = {"Authorization": f"Bearer {caller}", "Idempotency-Key": "order-42"}
        return client.post("/payments", data=body, headers=headers, content_type="application/json")

    first = send('{"amount": 10, "currency": "EUR"}')
    again = send('{"currency": "EUR", "amount": 10.0}')
    other = send('{"amount": 99, "currency": "EUR"}')
    assert (first.status_code, first.get_json()) == (201, {"charged": 10})
    assert (again.status_code, again.data) == (201, first.data)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, other.get_json()["retry"]) == (422, "new_key")
    assert send('{"amount": 10, "currency": "EUR"}', caller="stranger").status_code == 401
    names["idem"].close()


def test_the_job_runs_each_payout_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call again returns what the first did; another amount under the same id is refused."""
    monkeypatch.chdir(tmp_path)
    names = run_block("run_batch(")
    assert str(names["report"]) == "2 items: 2 done"
    send, due = names["send"], [item.item for item in names["report"].items]
    again = names["run_batch"](send, due)
    assert (str(again), again.complete) == ("2 items: 2 replayed", True)
    assert again.items[0].value == "sent 500.00 for p-1"
    assert sum(1 for _ in names["idem"].store.find(limit=10)) == 2
    with pytest.raises(FingerprintMismatch):
        send({"id": "p-1", "amount": "900.00"})
    names["idem"].close()


def test_the_order_is_made_once_with_its_record_or_not_at_all(tmp_path: Path) -> None:
    """A retry is given the answer; where the commit fails, neither order nor mark is there, and it runs."""
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    idem, database, metadata = Engine(url), create_engine(url), MetaData()
    idem.create_schema()
    orders = Table("orders", metadata, Column("reference", String), Column("article", String))
    metadata.create_all(database)
    names = run_block(
        "current_attempt().join(", idem=idem, idempotent=idempotent, database=database, orders=orders
    )
    order = names["order"]
    assert [order("r-1", "tea") for _ in range(2)] == ["ordered tea"] * 2

    def fail(connection: Connection) -> None:
        raise ConnectionError

    event.listen(database, "commit", fail)
    with pytest.raises(ConnectionError):
        order("r-2", "milk")
    event.remove(database, "commit", fail)
    assert order("r-2", "milk") == "ordered milk"
    with database.connect() as connection:
        assert connection.execute(select(orders.c.article)).scalars().all() == ["tea", "milk"]
    database.dispose()
    idem.close()
