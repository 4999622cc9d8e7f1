"""Fixtures for a suite that opts in: ``pytest_plugins = ["idemcore.testing.pytest_plugin"]``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from idemcore.engine import Engine
from idemcore.stores.memory import MemoryStore
from idemcore.testing.clock import FakeClock


@pytest.fixture
def idemcore_clock() -> FakeClock:
    """The clock of `idemcore_engine`: ``idemcore_clock.advance(seconds)``."""
    return FakeClock()


@pytest.fixture
def idemcore_engine(idemcore_clock: FakeClock) -> Iterator[Engine]:
    """An engine over an empty store in memory, whose time passes only as `idemcore_clock` is told."""
    store = MemoryStore(clock=idemcore_clock, wall_clock=idemcore_clock)
    with Engine(store, monotonic=idemcore_clock, sleep=idemcore_clock.sleep) as engine:
        yield engine
