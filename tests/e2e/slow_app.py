"""A Flask app whose view takes as long as the test wants: until a file named ``go`` is there."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from flask import Flask

from idemcore import SINGLE_TENANT, Engine
from idemcore_flask import Idempotency

FOLDER = Path(os.environ["SLOW_APP_FOLDER"])

app = Flask(__name__)
idem = Engine(f"sqlite:///{FOLDER / 'records.db'}")
idem.create_schema()
idempotency = Idempotency(
    app, engine=idem, scope=SINGLE_TENANT, lease=timedelta(seconds=3), max_hold=timedelta(minutes=5)
)


@app.post("/slow")
@idempotency.required
def slow() -> tuple[str, int]:
    with (FOLDER / "runs").open("a") as runs:
        runs.write("run\n")
    while not (FOLDER / "go").exists():
        time.sleep(0.02)  # a handler at work; gevent's workers switch here
    return "done", 201
