"""An engine in memory with a clock of the test's own."""

from __future__ import annotations

import pytest

from idemcore import Engine
from tests.core.engine_fixtures import Bench, make_bench


@pytest.fixture
def bench() -> Bench:
    return make_bench()


@pytest.fixture
def idem(bench: Bench) -> Engine:
    return bench.idem
