"""The claim that tests of a single store make, its answer, and how one that is finished comes to be."""

from __future__ import annotations

from typing import Any

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Stored
from idemcore.stores.base import Store

A, B = b"A" * 16, b"B" * 16
ONE = Identity("tenant", "op", "k-1")
ANSWER = Answer("http", b"{}", b"done")


def claim(key: str = ONE.key, token: bytes = A, **changes: Any) -> Claim:
    """For thirty seconds, within ten minutes; kept for a day."""
    made = Claim(ONE._replace(key=key), "v1.x:1", token, 1, 30.0, 600.0, 86_400.0, False)
    return made._replace(**changes)


def completed(store: Store, key: str = ONE.key, answer: Answer = ANSWER) -> None:
    """Claims the key and records its answer."""
    assert store.reserve(claim(key)) is None
    assert store.complete(claim(key), answer) == Stored()
