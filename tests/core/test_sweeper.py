"""The background sweeper: when it sweeps, what it survives, and how it ends."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from idemcore import ConfigurationError, Engine, MemoryStore, StoreUnavailable, events
from idemcore.announcer import Announcer
from idemcore.record import Swept
from idemcore.sweeper import Sweeper
from tests.core.engine_fixtures import TEN_EUROS, make_bench

SOON = timedelta(milliseconds=1)


def test_workers_that_start_together_do_not_sweep_together() -> None:
    """SWE: the first sweep falls anywhere in the interval, each further one about an interval later."""

    def rests(chance: float) -> tuple[float, float]:
        sweeper = Sweeper(lambda: iter([]), Announcer([]), 100, lambda: chance)
        return sweeper.rest(first=True), sweeper.rest(first=False)

    assert [rests(chance) for chance in (0.0, 0.5, 1.0)] == [(0, 50), (50, 100), (100, 150)]
    drawn = {Sweeper(lambda: iter([]), Announcer([]), 100).rest(first=True) for _ in range(10)}
    assert len(drawn) == 10


def test_it_removes_what_is_past_retention_and_names_what_was_abandoned() -> None:
    """SWE-01: in the thread, without any call after the first; `close` ends that thread."""
    bench = make_bench()
    crashed = bench.attempt(key="crashed").identity
    bench.clock.advance(2 * 86400)
    told = threading.Event()
    seen: list[events.Event] = []

    def hear(event: events.Event) -> None:
        seen.append(event)
        told.set()

    with Engine(bench.idem.store, observers=[hear]) as idem:
        idem.sweep_in_background(every=SOON)
        assert told.wait(60)
        sweeper = idem._sweeper
        assert sweeper is not None
        assert sweeper.running
    assert not sweeper.running
    assert seen == [events.Abandoned(crashed)]


def test_a_sweep_that_fails_is_announced_and_the_next_one_comes() -> None:
    """The store may be away for a while: no end of the thread, no traceback."""

    class Away(MemoryStore):
        sweeps = 0

        def sweep(self, limit: int) -> Swept:
            self.sweeps += 1
            if self.sweeps < 3:
                raise StoreUnavailable("away for a moment")
            back.set()
            return Swept(0, 0)

    back = threading.Event()
    seen: list[events.Event] = []
    with Engine(Away(), observers=[seen.append]) as idem:
        idem.sweep_in_background(every=SOON)
        assert back.wait(60)
    assert seen == [events.SweepFailed("StoreUnavailable")] * 2
    assert str(seen[0]).startswith("SweepFailed: background sweep failed")


def test_it_stops_after_the_batch_in_hand() -> None:
    """However much there is to remove, and in which state the store is left behind."""
    batches = 0

    def endless() -> Iterator[Swept]:
        nonlocal batches
        while True:
            batches += 1
            yield Swept(1, 0)
            sweeper.stop()

    sweeper = Sweeper(endless, Announcer([]), 1)
    sweeper.sweep()
    assert batches == 2


def test_what_fails_because_of_the_end_is_no_alarm() -> None:
    """A store that is closed under the sweep says so, and nobody needs to hear it."""

    def closed() -> Iterator[Swept]:
        sweeper.stop()
        raise ConfigurationError("closed")
        yield

    seen: list[events.Event] = []
    sweeper = Sweeper(closed, Announcer([seen.append]), 1)
    sweeper.sweep()
    assert seen == []


def test_a_forgotten_engine_is_collected_and_its_thread_ends() -> None:
    """The thread holds the engine only while it works."""
    idem = Engine("memory://")
    idem.sweep_in_background()
    sweeper = idem._sweeper
    assert sweeper is not None
    thread = sweeper._thread._thread
    assert thread is not None
    gone = weakref.ref(idem)
    del idem, sweeper
    gc.collect()
    assert gone() is None
    thread.join(60)
    assert not thread.is_alive()


def test_called_again_the_new_interval_counts() -> None:
    """One thread, and the older one has ended."""
    with Engine("memory://") as idem:
        idem.sweep_in_background(every=timedelta(days=1))
        first = idem._sweeper
        idem.sweep_in_background(every=timedelta(days=2))
        assert first is not None
        assert first is not idem._sweeper
        assert not first.running


@pytest.mark.parametrize("every", [timedelta(0), timedelta(seconds=-1), 3600])
def test_an_interval_that_is_none_is_refused(every: object) -> None:
    """At set-up, where it stands."""
    with Engine("memory://") as idem, pytest.raises(ConfigurationError, match="timedelta"):
        idem.sweep_in_background(every=every)  # type: ignore[arg-type]  # what users try


def test_an_engine_without_a_store_has_nothing_to_sweep() -> None:
    """As with every use before `bind`."""
    with pytest.raises(ConfigurationError, match="bind"):
        Engine().sweep_in_background()


FORKED = """
import os, sys
from datetime import timedelta
from idemcore import Engine, fingerprint

idem = Engine(sys.argv[1])
idem.create_schema()
idem.sweep_in_background(every=timedelta(days=1))
child = os.fork()
if child == 0:
    before = idem._sweeper.running
    idem.begin(scope="t", operation="o", key="k", fingerprint=fingerprint(1)).complete(b"")
    after = idem._sweeper.running
    idem.close()
    os._exit(0 if (before, after, idem._sweeper.running) == (False, True, False) else 1)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(ended if idem._sweeper.running else 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_worker_sweeps_from_its_first_claim_on(tmp_path: Path) -> None:
    """SQL-04: as a pre-fork server makes workers; the parent's thread goes on in the parent."""
    url = f"sqlite:///{tmp_path / 'records.db'}"
    ended = subprocess.run([sys.executable, "-c", FORKED, url], timeout=60, check=False)
    assert ended.returncode == 0


EXITING = """
import sys, threading
from datetime import timedelta
from idemcore import Engine, MemoryStore
from idemcore.record import Swept

class Full(MemoryStore):
    def sweep(self, limit):
        under_way.set()
        return Swept(limit, 0)

under_way = threading.Event()
idem = Engine(Full())
idem.sweep_in_background(every=timedelta(milliseconds=1))
under_way.wait(60)
print("end of the program", flush=True)
"""


def test_a_program_ends_cleanly_in_the_middle_of_a_sweep() -> None:
    """The batch in hand is done, nothing is printed, and the exit status is 0."""
    ended = subprocess.run(
        [sys.executable, "-c", EXITING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "end of the program\n", "")


def test_a_system_without_threads_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are served all the same."""
    bench = make_bench()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    bench.idem.sweep_in_background()
    assert bench.seen(events.SweepFailed) == [events.SweepFailed("no thread could be started")]
    bench.attempt(key="k", fingerprint=TEN_EUROS).complete(b"")
