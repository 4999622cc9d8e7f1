"""A timed get ends, however short its time is and however busy the machine."""

from __future__ import annotations

import queue
import threading

import pytest

from idemcore.timed_get import timed_get


def test_it_ends_where_the_time_is_over_at_once() -> None:
    """CPython's own get hangs here within some ten thousand tries."""

    def get_in_vain() -> None:
        for _ in range(100_000):
            with pytest.raises(queue.Empty):
                timed_get(queue.SimpleQueue(), 1e-6)

    thread = threading.Thread(target=get_in_vain, daemon=True)
    thread.start()
    thread.join(100)
    assert not thread.is_alive()


def test_what_is_there_or_comes_in_time_is_given() -> None:
    """Without waiting for the time to be over."""
    source: queue.SimpleQueue[int] = queue.SimpleQueue()
    source.put(1)
    assert timed_get(source, 0) == 1
    threading.Timer(0.01, source.put, (2,)).start()
    assert timed_get(source, 60) == 2
