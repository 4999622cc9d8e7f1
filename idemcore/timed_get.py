"""A timed get on a SimpleQueue that ends when its time is over.

CPython's own (3.11 to 3.13 at the least) waits for ever where the queue is empty, its inner lock happens to be
free, and the time passes between the first look and the second: with a short time on a busy machine, with any
where the process is stopped just then. A get that does not wait leaves the lock of an empty queue taken, so
where one thread gets, this cannot happen; among several, the next put still ends it.
"""

from __future__ import annotations

import queue
from typing import TypeVar

T = TypeVar("T")


def timed_get(source: queue.SimpleQueue[T], seconds: float) -> T:
    """The next item.

    Raises:
        queue.Empty: none came within so many seconds.
    """
    try:
        return source.get_nowait()
    except queue.Empty:
        return source.get(timeout=seconds)
