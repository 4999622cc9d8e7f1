"""For the tests of programs and back ends that build on idemcore; nothing here is imported by the rest.

Programs: `off`, `fresh` and `use_store` put another store under an engine, `assert_idempotent` looks for
what runs twice, `FakeClock` is a clock that a test moves; `idemcore.testing.pytest_plugin` has fixtures.
Stores: `idemcore.testing.contract` is the suite that holds every one of them.
"""

from idemcore.testing.clock import FakeClock
from idemcore.testing.proving import RanTwice, assert_idempotent
from idemcore.testing.switches import fresh, off, use_store

__all__ = ["FakeClock", "RanTwice", "assert_idempotent", "fresh", "off", "use_store"]
