"""Starts workers, sweepers and an operator, kills and stops them, and asks for every key at last."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from sqlalchemy import create_engine, text

from idemcore.stores.base import Store
from tests.torture import worker
from tests.torture.backends import BACKENDS, Place
from tests.torture.checker import Finding, check
from tests.torture.history import Diary, History, read
from tests.torture.witness import Witness
from tests.torture.worker import LEASE, Shift

WORKERS: Final = 8
_PATIENCE: Final = 60.0

_apart = multiprocessing.get_context("forkserver")
_apart.set_forkserver_preload(["tests.torture.worker"])  # imported once, not for every worker that dies

Watch = Callable[[float], None]
"""Is told how far the run is, from 0 to 1."""


def torture(
    place: Place,
    folder: Path,
    *,
    seconds: float,
    seed: int,
    fault: Callable[[Store], Store] | None = None,
    lease: float = LEASE,
    watch: Watch = lambda done: None,
) -> tuple[History, list[Finding]]:
    """One run and the checker's verdict on it."""
    if not BACKENDS[place.backend].threads:
        _warm_up()
    started = time.monotonic() + 0.2
    shift = Shift(place.for_worker(), folder, seed, started, started + seconds, fault, lease)
    crew = _Threads(shift) if shift.threads else _Processes(shift, place, watch)
    crew.run(watch)
    history = read(folder)
    note_orders(shift)
    ask_for_all(shift, sorted({call.key for call in history.calls}))
    history = read(folder)
    return history, check(history, tolerance=0.05 + place.skew)


def _warm_up() -> None:
    """Has the server of processes import everything before the clock starts."""
    first = _apart.Process(target=time.monotonic)
    first.start()
    first.join()


def note_orders(shift: Shift) -> None:
    """What was committed, as the database itself says."""
    if not BACKENDS[shift.place.backend].orders:
        return
    engine = create_engine(shift.place.url)
    with engine.connect() as connection, (shift.folder / "orders").open("w") as file:
        for key, token in connection.execute(text("SELECT of_key, token FROM orders")):
            file.write(json.dumps({"key": key, "token": token}) + "\n")
    engine.dispose()


def ask_for_all(shift: Shift, keys: list[str]) -> None:
    """Every lease is over: twice for each key, what its callers get now. None may still be in progress."""
    time.sleep(shift.lease + shift.place.skew + 0.1)
    diary = Diary(shift.folder, "closing")
    store = Witness(shift.open(), diary, lambda witness: None)
    idem = shift.engine(store)
    for key in keys * 2:
        worker.call(idem, store, diary, _Finishing(), key)
    idem.close()
    if not shift.threads:
        store.close()
    diary.close()


class _Finishing(Random):
    """No chance: the first request, and it is completed."""

    def random(self) -> float:
        return 0.5

    def choices(self, population: Any, weights: Any = None, **rest: Any) -> list[Any]:
        return [population[0]]

    def uniform(self, a: float, b: float) -> float:
        return a


class _Threads:
    def __init__(self, shift: Shift) -> None:
        self._shift = shift

    def run(self, watch: Watch) -> None:
        errors: list[BaseException] = []

        def guarded(act: Callable[[Shift, str], None], name: str) -> None:
            try:
                act(self._shift, name)
            except BaseException as error:
                errors.append(error)

        acts = [(worker.work, f"w{number}") for number in range(WORKERS)]
        acts += [(worker.sweep, "s0"), (worker.sweep, "s1"), (worker.operate, "operator")]
        threads = [threading.Thread(target=guarded, args=act) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
                watch(_done(self._shift))
        if errors:
            raise errors[0]


class _Processes:
    def __init__(self, shift: Shift, place: Place, watch: Watch) -> None:
        self._shift = shift
        self._troubles = place.troubles
        self._chance = Random(f"{shift.seed} director")
        self._diary = Diary(shift.folder, "director")
        self._crew: dict[str, Any] = {}
        self._lives: dict[str, int] = {}
        self._wakes: dict[int, float] = {}

    def run(self, watch: Watch) -> None:
        for number in range(WORKERS):
            self._start(f"w{number}", worker.work)
        for name in ("s0", "s1"):
            self._start(name, worker.sweep)
        self._start("operator", worker.operate)
        due = {name: self._next(name) for name in ("kill", "stop", *(["trouble"] if self._troubles else []))}
        try:
            while time.monotonic() < self._shift.ends:
                time.sleep(0.01)
                self._replace_the_dead()
                self._wake_the_stopped()
                for name, moment in due.items():
                    if time.monotonic() >= moment:
                        self._do(name)
                        due[name] = self._next(name)
                watch(_done(self._shift))
        finally:
            self._end()

    def _start(self, name: str, act: Callable[[Shift, str], None]) -> None:
        life = self._lives[name] = self._lives.get(name, 0) + 1
        process = _apart.Process(target=act, args=(self._shift, f"{name}.{life}"), daemon=True)
        process.start()
        self._crew[name] = process

    def _replace_the_dead(self) -> None:
        for name, process in list(self._crew.items()):
            if process.exitcode is None:
                continue
            code = process.exitcode
            process.close()
            if code not in (0, -signal.SIGKILL):
                raise RuntimeError(f"{name} broke (exit status {code}); its traceback is above")
            if name.startswith("w") and time.monotonic() < self._shift.ends:
                self._start(name, worker.work)
            else:
                del self._crew[name]

    def _wake_the_stopped(self) -> None:
        now = time.monotonic()
        for process in self._crew.values():
            pid = process.pid
            if pid not in self._wakes and _is_stopped(pid):
                self._wakes[pid] = now + self._chance.uniform(0, 2.5 * self._shift.lease)
            elif self._wakes.get(pid, now + 1) <= now:
                del self._wakes[pid]
                _signal(pid, signal.SIGCONT)

    def _do(self, name: str) -> None:
        if name == "trouble":
            name = self._chance.choice(sorted(self._troubles))
            self._diary.write("deed", name=name.partition(" ")[0])
            self._troubles[name]()
            return
        workers = [process for who, process in self._crew.items() if who.startswith("w")]
        if workers:
            self._diary.write("deed", name=name)
            _signal(self._chance.choice(workers).pid, signal.SIGKILL if name == "kill" else signal.SIGSTOP)

    def _next(self, name: str) -> float:
        return time.monotonic() + self._chance.expovariate({"kill": 0.5, "stop": 0.5, "trouble": 0.7}[name])

    def _end(self) -> None:
        give_up_at = time.monotonic() + _PATIENCE
        while self._crew and time.monotonic() < give_up_at:
            for process in self._crew.values():
                if _is_stopped(process.pid):
                    _signal(process.pid, signal.SIGCONT)
            self._replace_the_dead()
            time.sleep(0.02)
        for name, process in self._crew.items():
            process.kill()
            raise RuntimeError(f"{name} did not come to its end")
        self._diary.close()


def _done(shift: Shift) -> float:
    return min((time.monotonic() - shift.started) / (shift.ends - shift.started), 1.0)


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, which)


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False
