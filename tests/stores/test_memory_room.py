"""How many bytes a record takes in memory, as Python allocates them, and how many the store counts for it."""

from __future__ import annotations

import gc

import pytest

from benchmarks.record_bytes import answer_of, claim_of_its_own, measured
from idemcore import MemoryStore
from idemcore.stores.orders import Links

MOST = 1_000
"""Bytes for a finished record with a body of 200."""


# A dict with 1,365 places is nearly full at the first; one with 21,845 has just grown at the second.
@pytest.mark.parametrize("count", [1_300, 22_000])
def test_a_finished_record_takes_at_most_a_thousand_bytes(count: int) -> None:
    """With a body of 200 bytes and all that belongs to it: key, fingerprint, token, head of the answer."""
    kept, _ = measured(count, 200)
    assert 600 < kept <= MOST  # below that it would not be the whole


@pytest.mark.parametrize("size", [None, 0, 200, 5_000])
@pytest.mark.parametrize("count", [1_300, 1_400])
def test_the_room_that_is_counted_is_the_room_that_is_taken(count: int, size: int | None) -> None:
    """Claims, answers with no body, small and large ones: `max_bytes` is what Python spends."""
    kept, counted = measured(count, size)
    assert counted == pytest.approx(kept, rel=0.15)


def test_a_record_that_is_gone_waits_for_no_collection() -> None:
    """Removed records and the lines that they emptied refer to nothing that refers to them."""
    store = MemoryStore()
    gc.collect()
    gc.disable()
    try:
        for number in range(100):
            made = claim_of_its_own(retention=1.0 + number)  # a line of its own
            store.reserve(made)
            store.complete(made, answer_of(200))
            store.forget(made.identity, made.token)
        store.sweep(1)
        assert (len(store), len(store._shelf._lines)) == (0, 0)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [found for found in gc.garbage if isinstance(found, Links)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
