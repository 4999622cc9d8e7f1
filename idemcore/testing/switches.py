"""An engine's store for the length of a test: none, a fresh one, or one of the test's own.

Each is a context manager and a decorator. Programs make their engine once, often at import, and decorate
their functions with it; these put another store under it and the former one back, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from idemcore.engine import Engine
from idemcore.stores.base import Store
from idemcore.stores.memory import MemoryStore
from idemcore.testing.forgetful import ForgetfulStore


@contextmanager
def use_store(engine: Engine, store: Store) -> Iterator[Store]:
    """Puts a store under an engine, bound or not, and the former one back at the end.

    Not for several threads at once: what one of them begins meanwhile uses this store too.
    """
    former = engine._bound, engine._owned
    engine._bound = None
    engine.bind(store)
    try:
        yield store
    finally:
        engine.keeper.stop()
        engine._bound, engine._owned = former


@contextmanager
def fresh(engine: Engine) -> Iterator[Store]:
    """An empty store in memory, so that no test sees what another one did."""
    with use_store(engine, MemoryStore()) as store:
        yield store


@contextmanager
def off(engine: Engine) -> Iterator[None]:
    """No protection: every call runs, and nothing is kept. For tests that are about something else.

    Keys, scopes and fingerprints are still read and checked, so that such a test finds what is wrong there.
    """
    with use_store(engine, ForgetfulStore()):
        yield
