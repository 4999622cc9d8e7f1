"""Sweeping: what goes is named where its effect may be unrecorded, in steps that suit the store."""

from __future__ import annotations

from idemcore import Engine, MemoryStore, events
from idemcore.record import Swept
from tests.core.engine_fixtures import make_bench


class Heap(MemoryStore):
    """Has so many dead records, and writes down how many it was asked to remove at a time."""

    def __init__(self, dead: int) -> None:
        super().__init__()
        self.dead = dead
        self.asked: list[int] = []

    def sweep(self, limit: int) -> Swept:
        self.asked.append(limit)
        removed = min(self.dead, limit)
        self.dead -= removed
        return Swept(removed, 0)


class SlowHeap(Heap):
    """One whose users wait while it is swept."""

    sweep_batch = 100


def test_each_abandoned_claim_that_goes_is_an_event() -> None:
    """SWE-01: it may hide a charge that nobody recorded, so its digest reaches the log at WARNING."""
    bench = make_bench()
    crashed = [bench.attempt(key=key).identity for key in ("a", "b")]
    bench.attempt(key="done").complete(b"")
    bench.clock.advance(2 * 86400)
    swept = bench.idem.sweep()
    assert sorted(swept.lost) == crashed
    assert (swept.abandoned, swept.finished) == (2, 1)
    told = bench.seen(events.Abandoned)
    assert sorted(event.identity for event in told) == crashed
    assert crashed[0].digest in "".join(map(str, told))


def test_a_store_says_how_large_a_step_may_be() -> None:
    """SWE-02: writers to SQLite wait while a batch goes, so its batches are small; a caller's word counts."""
    for heap, batch, asked in (
        (Heap(1500), None, [1000, 1000]),
        (SlowHeap(150), None, [100, 100]),
        (SlowHeap(9), 5, [5, 5]),
    ):
        Engine(heap, observers=[], sleep=lambda _: None).sweep(batch=batch)
        assert heap.asked == asked
