"""Waiting for what other threads and processes do: for as long as a busy machine may take, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which what has not come about never will."""


def until(condition: Callable[[], object], *, patience: float = PATIENCE) -> bool:
    """Whether it comes about in that time."""
    gives_up_at = time.monotonic() + patience
    while not condition():
        if time.monotonic() > gives_up_at:
            return False
        time.sleep(0.02)
    return True
