"""`flask idemcore …`."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_a_failure_under_json_is_json(tmp_path: Path) -> None:
    """As the program itself has it, though the group hangs in Flask's."""
    app = Flask("shop")
    Idempotency(app, engine=Engine(f"sqlite:///{tmp_path / 'a.db'}"), scope=SINGLE_TENANT)
    got = app.test_cli_runner().invoke(args=["idemcore", "ls", "--json"])
    told = json.loads(got.output)
    assert (got.exit_code, told["exit_status"], "missing" in told["error"]) == (2, 2, True)
