"""How much memory a finished record takes in the store that keeps them there, as Python allocates it."""

from __future__ import annotations

import gc
import os
import tracemalloc
import uuid

from idemcore.http.answer import to_meta
from idemcore.identity import Identity
from idemcore.meta import encode_meta
from idemcore.record import Answer, Claim
from idemcore.stores.memory import MemoryStore

COUNT = 22_000
"""A dict's 21,845 places and some more: it has just grown, and no other number costs more for each."""

SIZE = 200
HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(SIZE))]


def finish_one(store: MemoryStore) -> None:
    """A record that shares nothing with another but its scope and operation; its head is a web framework's."""
    identity = Identity("tenant", "charge", str(uuid.uuid4()))
    fingerprint = f"v1.exact:{os.urandom(32).hex()}"
    claim = Claim(identity, fingerprint, os.urandom(16), 1, 30.0, 600.0, 86_400.0, hold=False)
    assert store.reserve(claim) is None
    meta = encode_meta(to_meta("201 CREATED", HEADERS, SIZE))
    store.complete(claim, Answer("http", meta, os.urandom(SIZE)))


def bytes_a_record() -> float:
    """Bytes of memory that one of these takes, with its places in the store's books."""
    store = MemoryStore(max_bytes=4 << 30)
    finish_one(store)
    gc.collect()
    tracemalloc.start()
    for _ in range(COUNT):
        finish_one(store)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / COUNT
