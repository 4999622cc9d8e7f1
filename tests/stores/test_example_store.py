"""The example of docs/write-your-own-store.md passes the store contract: a store on LMDB."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from idemcore.identity import Identity
from idemcore.testing import FakeClock
from idemcore.testing.contract import StoreContract, UnreadableContract
from tests.stores import racers

EXAMPLE = Path(__file__).parents[2] / "examples" / "stores" / "lmdb_store.py"

spec = importlib.util.spec_from_file_location("lmdb_store", EXAMPLE)
assert spec is not None
assert spec.loader is not None
lmdb_store: Any = importlib.util.module_from_spec(spec)
sys.modules["lmdb_store"] = lmdb_store  # dataclasses look their module up
spec.loader.exec_module(lmdb_store)


class OnLMDB:
    def open_store(self) -> Any:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock(time.time())
        return lmdb_store.LMDBStore(self.folder.name, clock=self.clock)

    def teardown_method(self) -> None:
        super().teardown_method()  # type: ignore[misc] # the contract class beside it has one
        self.folder.cleanup()

    def age(self, identity: Identity, seconds: float) -> None:
        self.clock.advance(seconds)


class TestLMDB(OnLMDB, StoreContract):
    """Everything that a store must do."""


class TestUnreadableInLMDB(OnLMDB, UnreadableContract):
    """Records of a newer version."""

    def damages(self) -> list[str]:
        return ["format", "state"]

    def damage(self, identity: Identity, kind: str) -> None:
        store: Any = self.store
        name = lmdb_store._name(identity)
        with store._env.begin(write=True, db=store._records) as txn:
            fields = json.loads(txn.get(name))
            fields[kind] = {"format": 2, "state": "pondered"}[kind]
            txn.put(name, json.dumps(fields).encode())


def claim_all(folder: str, keys: list[str], barrier: Any, results: Any) -> None:
    store = lmdb_store.LMDBStore(folder)
    barrier.wait()
    results.put([key for key in keys if store.reserve(racers.claim(key)) is None])
    store.close()


def test_processes_share_every_key_out_once(tmp_path: Path) -> None:
    """RAC-01: what the contract cannot stage for any store: four processes on one folder."""
    keys = [str(number) for number in range(30)]
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.SimpleQueue()
    arguments = (str(tmp_path), keys, barrier, results)
    processes = [context.Process(target=claim_all, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    granted = [key for _ in processes for key in results.get()]
    for process in processes:
        process.join()
    assert sorted(granted) == sorted(keys)
