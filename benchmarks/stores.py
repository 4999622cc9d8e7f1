"""What does remembering cost on each store, in units of the bare statements of its driver, and beside peers?

    python -m benchmarks.stores [--quick] [--json FILE] [--plot FILE] [--only WORD]

A new request is a claim and its completion, against an INSERT and an UPDATE by primary key; a replay is a
claim that finds a completed record, against a SELECT by primary key. In memory and on SQLite, where no server
works along, it is processor time. On servers it is wall time, and commits wait for the disk; where PostgreSQL
runs here, the processor time of both ends is shown beside it, which a busy machine changes less. All of a
backend ran in turn in one process. Where a server is not there, its backend is left out and named.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
import pymysql
from redis import ConnectionError as RedisConnectionError
from rich.console import Console

from benchmarks.backends import Opened
from benchmarks.contest import BACKENDS, Backend
from benchmarks.harness import Contender, Row, arguments, machine, race, show
from benchmarks.record_bytes import bytes_a_record
from benchmarks.store_plot import draw
from idemcore import Engine
from idemcore.stores.base import PacedStore, Store

UNREACHABLE = (psycopg.OperationalError, pymysql.OperationalError, RedisConnectionError)

WORDS = {
    "new": "new request, × the bare statements",
    "replay": "replay, × the bare statement",
    "sweep": "sweep, µs a row",
    "bytes": "bytes of memory a record with a body of 200 bytes",
    "foreground": "99th percentile of a new request while a sweep runs, × idle",
}


@dataclass(frozen=True)
class Goal:
    """A figure and the most that it may be."""

    backend: str
    what: str
    figure: float
    most: float

    def __str__(self) -> str:
        met = "[green]met[/]    " if self.figure <= self.most else "[red]not met[/]"
        return f"{met} {self.backend}: {WORDS[self.what]}: {self.figure:.2f}, at most {self.most:g}"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures into FILE")
    parser.add_argument("--only", metavar="WORD", default="", help="the backends with this in their name")
    options = parser.parse_args()
    console = Console()
    groups: dict[str, list[Row]] = {}
    figures: dict[str, dict[str, float]] = {}
    for backend in [backend for backend in BACKENDS if options.only in backend.name]:
        try:
            with tempfile.TemporaryDirectory() as folder, backend.open(Path(folder)) as opened:
                rows, found = measured(backend, opened, quick=options.quick)
        except (ImportError, *UNREACHABLE) as error:
            console.print(f"{backend.name}: left out, {type(error).__name__}")
            continue
        for title, group in rows.items():
            groups[f"{backend.name}: {title}"] = group
            show(f"{backend.name}: {title}", group)
        figures[backend.name] = found
    goals = list(reached(figures))
    for name, found in figures.items():
        console.print(name, {what: round(figure, 2) for what, figure in found.items()})
    for goal in goals:
        console.print(str(goal))
    facts = machine(
        "sqlalchemy", "psycopg", "psycopg2-binary", "pymysql", "redis", "idemkit", "aws-lambda-powertools"
    )
    if options.json:
        content = {
            "machine": facts,
            "groups": {title: [asdict(row) for row in rows] for title, rows in groups.items()},
            "figures": figures,
            "goals": [{**asdict(goal), "met": goal.figure <= goal.most} for goal in goals],
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if options.plot:
        draw(options.plot, groups, facts)


def measured(backend: Backend, opened: Opened, *, quick: bool) -> tuple[dict[str, list[Row]], dict[str, float]]:
    rounds, calls = (9, 50) if quick else (41, 100)
    rows = {
        verb: race(
            contenders(opened, verb),
            rounds=rounds,
            calls=calls,
            title=f"{backend.name}: {verb}",
            cpu_time=backend.cpu_time,
        )
        for verb in ("new", "replay")
    }
    figures = {verb: ratio(rows[verb]) for verb in rows}
    if opened.processor_time is not None:
        for verb in ("new", "replay"):
            title = f"{verb}, processor time"
            rows[title] = race(
                contenders(opened, verb),
                rounds=rounds,
                calls=calls,
                title=f"{backend.name}: {title}",
                clock=opened.processor_time,
            )
            figures[title] = ratio(rows[title])
    if opened.sweeps:
        figures["sweep"] = sweeping(opened.store, opened.fill, rounds=3 if quick else 9)
    if "bytes" in backend.goals:
        figures["bytes"] = bytes_a_record()
    if opened.sweeps and opened.again is not None:
        figures["foreground"] = disturbed(opened, seconds=1.0 if quick else 5.0)
    return rows, figures


def contenders(opened: Opened, verb: str) -> list[Contender]:
    return [Contender(side.name, getattr(side, verb), base=side is opened.sides[0]) for side in opened.sides]


def ratio(rows: list[Row]) -> float:
    return next(row.ratio for row in rows if row.name == "idemcore")


def sweeping(store: Store, fill: Callable[[int, int], None], *, rounds: int, batches: int = 5) -> float:
    """Microseconds for each record removed: the best of the rounds, for a neighbour can only slow one down."""
    limit = store.sweep_batch if isinstance(store, PacedStore) else 1_000
    took = []
    for _ in range(rounds):
        fill(limit * batches, 1)
        started = time.perf_counter()
        assert sum(store.sweep(limit).finished for _ in range(batches)) == limit * batches
        took.append((time.perf_counter() - started) / (limit * batches) * 1e6)
    return min(took)


def disturbed(opened: Opened, *, seconds: float) -> float:
    """How much longer the 99th percentile of new requests is while another process sweeps."""
    new = opened.sides[1].new
    opened.fill(20_000 if seconds < 2 else 200_000, 1)
    idle = percentile(latencies(new, time.monotonic() + seconds))
    sweeper = multiprocessing.get_context("spawn").Process(target=sweep_all, args=(opened.again, seconds))
    sweeper.start()
    time.sleep(seconds / 2)  # until it has started
    busy = percentile(latencies(new, time.monotonic() + seconds))
    sweeper.join()
    return busy / idle


def latencies(new: object, until: float) -> list[float]:
    assert callable(new)
    taken = []
    while time.monotonic() < until:
        started = time.perf_counter()
        new(1)
        taken.append(time.perf_counter() - started)
    return taken


def percentile(times: list[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]


def sweep_all(again: Callable[[], Store], seconds: float) -> None:
    """As cron does it, in the store's own steps and pauses, for as long as it is looked at."""
    store = again()
    until = time.monotonic() + 2 * seconds
    for _ in Engine(store).sweep_batches():
        if time.monotonic() > until:
            break
    store.close()


def reached(figures: dict[str, dict[str, float]]) -> Iterable[Goal]:
    for backend in BACKENDS:
        for what, most in backend.goals.items():
            if what in figures.get(backend.name, {}):
                yield Goal(backend.name, what, figures[backend.name][what], most)


if __name__ == "__main__":
    main()
