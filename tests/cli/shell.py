"""The command line over one SQLite file, beside an engine that fills it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from sqlalchemy import create_engine

from idemcore import Attempt, Engine, Replay, fingerprint
from idemcore.cli.main import commands
from idemcore.stores.sql import SQLAlchemyStore

TEN = fingerprint({"amount": 10})


class Shell:
    """Runs commands; its own engine writes records as of `behind` seconds ago."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'records.db'}"
        self.behind = 0.0
        self.store = SQLAlchemyStore(self.url, clock=lambda: time.time() - self.behind)
        self.store.create_schema()
        self.idem = Engine(self.store, observers=[])

    def begin(self, key: str, **changes: Any) -> Attempt | Replay:
        asked: dict[str, Any] = {"scope": "tenant-7", "operation": "charge", "fingerprint": TEN, **changes}
        return self.idem.begin(key=key, **asked)

    def attempt(self, key: str, **changes: Any) -> Attempt:
        begun = self.begin(key, **changes)
        assert isinstance(begun, Attempt)
        return begun

    def commit(self, key: str) -> Attempt:
        """An attempt whose transaction is committed and whose answer is still to come."""
        attempt = self.attempt(key)
        engine = create_engine(self.url)
        with engine.begin() as connection:
            attempt.join(connection)
        engine.dispose()
        return attempt

    def run(self, *arguments: str, typed: str = "") -> Result:
        return CliRunner().invoke(commands, [*arguments], input=typed, env={"IDEMCORE_STORE": self.url})
