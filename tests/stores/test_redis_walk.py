"""Redis against the model of the contract, along random walks."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from idemcore.identity import Identity
from idemcore.record import State
from idemcore.stores.redis import RedisStore
from tests.stores.machine import WALKS, StoreWalk, walk
from tests.stores.redis_case import Keyspace


def test_redis_says_what_the_model_says(keyspace: Keyspace) -> None:
    """The server's clock runs on while the walk does, so time is moved by making the records older."""
    store = keyspace.open()

    class Walk(StoreWalk):
        tolerance = 1_000.0
        forgets_early = True  # at the end of their retention, to the millisecond

        def __init__(self) -> None:
            self.abandoned: set[Identity] = set()
            super().__init__()

        def fresh_store(self) -> RedisStore:
            keyspace.empty()
            return store

        def move_time(self, seconds: float) -> None:
            keyspace.age(None, seconds)
            for identity, row in self.model.rows.items():
                if self.model.forgettable(identity):
                    assert store.get(identity) is None
                    if row.state is State.CLAIMED:
                        self.abandoned.add(identity)

        def commit(self, identity: Identity) -> None:  # type: ignore[override]
            """No transaction of a caller's reaches into Redis, so this is no rule here."""

        @rule(limit=st.integers(1, 3))
        def sweep(self, limit: int) -> None:
            """What expired as a claim is counted, once, unless its key was used again or given up since."""
            counted = {i for i in self.abandoned if i not in self.model.rows and keyspace.is_indexed(i)}
            swept = self.store.sweep(limit)
            assert swept[:2] == (0, min(limit, len(counted)))
            assert counted.issuperset(swept.lost)
            self.abandoned = counted.difference(swept.lost)

    try:
        walk(Walk, WALKS // 4, steps=30)
    finally:
        store.close()
