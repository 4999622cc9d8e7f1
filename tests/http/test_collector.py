"""What passes by is collected, within its limits of bytes and of time."""

from __future__ import annotations

from collections.abc import Iterator

from idemcore import SINGLE_TENANT, Engine, identify
from idemcore.http import AnswerHead, Collector, Guard, Request, Run
from idemcore.testing.clock import FakeClock

HEAD = AnswerHead("200 OK", [])


def run_of(idem: Engine, **options: object) -> Run:
    guard = Guard(idem, options)  # type: ignore[arg-type]
    begun = guard.begin(Request("POST", "/", "", "", b""), "k", SINGLE_TENANT)
    assert isinstance(begun, Run)
    return begun


def kept(idem: Engine) -> object:
    record = idem.get(identify(SINGLE_TENANT, "http", "k"))
    return record and (getattr(record, "reason", "") or getattr(record, "answer", None).body)  # type: ignore[union-attr]


def test_a_stream_of_nothing_is_not_drained_for_ever() -> None:
    """A stream that never grows is given up once a claim may not be held any longer."""
    clock = FakeClock()

    def slow() -> Iterator[bytes]:
        while True:
            clock.advance(60)
            yield b""

    idem = Engine("memory://", observers=())
    collector = Collector(run_of(idem), HEAD, monotonic=clock)
    collector.feed(slow())
    collector.drain()
    assert kept(idem) == "not_drained"
    assert clock() <= FakeClock()() + 11 * 60


def test_what_was_taken_and_not_sent_is_kept_too() -> None:
    """Chunks that wait for a client that has left are part of the answer."""
    idem = Engine("memory://", observers=())
    collector = Collector(run_of(idem), HEAD)
    collector.add(b"early ")
    collector.feed([b"one ", b"two"])
    assert next(collector) == b"early "
    collector.drain()
    assert kept(idem) == b"early one two"
