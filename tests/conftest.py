"""What all tests share: no test's verdict depends on how fast the machine is."""

from __future__ import annotations

from hypothesis import settings

# A deadline would be a timed assert. The same examples everywhere: what passes once passes for a stranger too.
settings.register_profile("idemcore", deadline=None, derandomize=True)
# For the long run, `make nightly`: new examples every time.
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=100_000)
settings.load_profile("idemcore")
