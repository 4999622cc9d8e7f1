"""How many bytes a record takes in the memory store: as Python allocates them, and as the store counts.

A record shares nothing with another but its scope and operation, as an adapter makes it; the head of its answer
is a web framework's.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
import uuid

from idemcore.http.answer import to_meta
from idemcore.identity import identify
from idemcore.meta import encode_meta
from idemcore.record import Answer, Claim
from idemcore.stores.memory import MemoryStore

COUNT = 22_000
"""A dict's 21,845 places and some more: it has just grown, and no other number costs more for each."""

SIZE = 200


def bytes_a_record() -> float:
    """Bytes of memory that a finished one with a body of `SIZE` takes, with its places in the store's books."""
    kept, _ = measured(COUNT, SIZE)
    return kept


def measured(count: int, size: int | None) -> tuple[float, float]:
    """Bytes a record: allocated and kept, and counted by the store.

    Args:
        count: of records.
        size: of the bodies of finished ones; running claims where it is None.
    """
    store = MemoryStore(max_bytes=1 << 30)
    _fill(store, 1, size)  # what is made once is there
    counted = store._shelf.used_bytes
    gc.collect()
    tracemalloc.start()
    try:
        _fill(store, count, size)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept / count, (store._shelf.used_bytes - counted) / count


def claim_of_its_own(retention: float = 86_400.0) -> Claim:
    """One whose key, fingerprint and token are no other's."""
    identity = identify("tenant-7", "http", str(uuid.uuid4()))
    fingerprint = f"v1.exact:{os.urandom(32).hex()}"
    return Claim(identity, fingerprint, os.urandom(16), 1, 30.0, 600.0, retention, hold=False)


def answer_of(size: int) -> Answer:
    """One with a body of this size."""
    headers = [("Content-Type", "application/json"), ("Content-Length", str(size))]
    return Answer("http", encode_meta(to_meta("201 CREATED", headers, size)), os.urandom(size))


def _fill(store: MemoryStore, count: int, size: int | None) -> None:
    for _ in range(count):
        made = claim_of_its_own()
        store.reserve(made)
        if size is not None:
            store.complete(made, answer_of(size))
