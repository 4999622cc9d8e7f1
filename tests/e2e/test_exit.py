"""A process that ends in good order leaves its recordings behind, and does not hang over them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from idemcore import Engine, identify
from idemcore.record import Record

LATE = """
from idemcore import Engine, StoreUnavailable, fingerprint
from idemcore.stores.sql import SQLAlchemyStore
import sys

store = SQLAlchemyStore(sys.argv[1])
store.create_schema()
real = store.complete
idem = Engine(store)
attempt = idem.begin(scope="t", operation="o", key="k", fingerprint=fingerprint(1))

def away(*args):
    raise StoreUnavailable("away for a moment")

store.complete = away
attempt.complete(b"receipt")
if sys.argv[2] == "back":
    store.complete = real
print("end of the program", flush=True)
"""


@pytest.mark.parametrize(("store", "state"), [("back", "completed"), ("away", "claimed")])
def test_a_recording_that_waits_is_made_at_exit_where_the_store_is_back(
    tmp_path: Path, store: str, state: str
) -> None:
    """OUT-04: tried a last time when the interpreter ends; where it is away still, that is said aloud."""
    url = f"sqlite:///{tmp_path / 'records.db'}"
    ended = subprocess.run(
        [sys.executable, "-c", LATE, url, store], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "end of the program\n"
    assert ("work done and never recorded" in ended.stderr) is (store == "away")
    with Engine(url) as idem:
        record = idem.get(identify("t", "o", "k"))
    assert isinstance(record, Record)
    assert record.state == state
