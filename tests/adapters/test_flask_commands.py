"""`flask idemcore …`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from flask import Flask

from idemcore import SINGLE_TENANT, Engine, MemoryStore
from idemcore_flask import Idempotency
from tests.adapters.flask_bench import FlaskBench
from tests.core.engine_fixtures import Faulty


def test_init_db_makes_the_table_and_sweep_counts(tmp_path: Path) -> None:
    """SWE-01, SWE-05: on the app's own engine; repeatable; zero for an empty table."""
    app = Flask("shop")
    Idempotency(app, engine=Engine(f"sqlite:///{tmp_path / 'a.db'}"), scope=SINGLE_TENANT, protect="required")
    app.post("/")(lambda: "done")
    cli = app.test_cli_runner()
    for _ in range(2):
        assert cli.invoke(args=["idemcore", "init-db"]).output == "ready\n"
    assert app.test_client().post("/", headers={"Idempotency-Key": "k"}).status_code == 200
    assert cli.invoke(args=["idemcore", "sweep"]).output == "removed 0 finished and 0 abandoned\n"


def test_a_missing_table_is_one_line(tmp_path: Path) -> None:
    """SWE-05: exit status 2, since trying again does not help, and a sentence; no traceback."""
    app = Flask("shop")
    Idempotency(app, engine=Engine(f"sqlite:///{tmp_path / 'a.db'}"), scope=SINGLE_TENANT)
    got = app.test_cli_runner().invoke(args=["idemcore", "sweep"])
    assert got.exit_code == 2
    assert got.output.count("\n") == 1
    assert got.output.startswith("Error: ")


def test_a_store_that_is_down_is_one_line() -> None:
    """SWE-05: and no password of its URL."""
    store = Faulty()
    store.inner = MemoryStore()
    bench = FlaskBench(store=store).start()
    store.break_next("sweep")
    got = bench.app.test_cli_runner().invoke(args=["idemcore", "sweep"])
    assert (got.exit_code, got.output) == (1, "Error: down\n")


def test_without_rich_all_but_a_table_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flask brings click alone: sweeping shows no bar, and a list says what to install or to add."""
    for name in ("rich.console", "rich.progress", "rich.table"):
        monkeypatch.setitem(sys.modules, name, None)
    app = Flask("shop")
    Idempotency(app, engine=Engine(f"sqlite:///{tmp_path / 'a.db'}"), scope=SINGLE_TENANT)
    cli = app.test_cli_runner()
    assert cli.invoke(args=["idemcore", "init-db"]).exit_code == 0
    assert cli.invoke(args=["idemcore", "sweep"]).exit_code == 0
    assert cli.invoke(args=["idemcore", "ls", "--json"]).output == "[]\n"
    table = cli.invoke(args=["idemcore", "ls"])
    assert table.exit_code == 2
    assert table.output == "Error: A table needs rich: add --json, or pip install 'idemcore[cli]'\n"
