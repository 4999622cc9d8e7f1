"""Does it stay as fast: with a million records, with more threads, with more processes?

    python -m benchmarks.growth [--quick] [--json FILE] [--plot FILE] [--only WORD]

Tables of every size are used in turn, so that what is compared ran at the same time; the figure is the time of
a call relative to the smallest table's. Threads and processes claim and complete new keys, each its own, for a
while; the figure is how many pairs a second all of them manage together.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.backends import ours
from benchmarks.contest import BACKENDS, Backend
from benchmarks.growth_plot import draw
from benchmarks.harness import Contender, Row, arguments, machine, race, show
from benchmarks.stores import UNREACHABLE
from idemcore.stores.base import Store

MOST_GROWTH = 1.15
FOR_EVER = 1 << 60
WORKERS = (1, 2, 4, 8)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures into FILE")
    parser.add_argument("--only", metavar="WORD", default="", help="the backends with this in their name")
    options = parser.parse_args()
    console, quick = Console(), options.quick
    sizes = (1_000, 30_000) if quick else (10_000, 100_000, 1_000_000)
    rows: dict[str, list[Row]] = {}
    rates: dict[str, dict[int, float]] = {}
    for backend in [backend for backend in BACKENDS if options.only in backend.name]:
        try:
            with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                for verb, found in by_size(backend, sizes, Path(folder), stack, quick=quick).items():
                    rows[f"{backend.name}: {verb}"] = found
                    show(f"{backend.name}: {verb}, by records in the table", found)
            rates |= by_workers(backend, seconds=0.5 if quick else 3.0)
        except (ImportError, *UNREACHABLE) as error:
            console.print(f"{backend.name}: left out, {type(error).__name__}")
    show_rates(console, rates)
    for title, found in rows.items():
        growth = found[-1].ratio
        word = "[green]met[/]    " if growth <= MOST_GROWTH else "[red]not met[/]"
        console.print(
            f"{word} {title}: {found[-1].name} cost {growth:.2f} × {found[0].name}, at most {MOST_GROWTH}"
        )
    facts = machine("sqlalchemy", "psycopg", "psycopg2-binary")
    if options.json:
        grown = {title: [asdict(row) for row in found] for title, found in rows.items()}
        content = {"machine": facts, "rows": grown, "pairs a second": rates}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if options.plot:
        draw(options.plot, rows, rates, facts)


def by_size(
    backend: Backend, sizes: tuple[int, ...], folder: Path, stack: ExitStack, *, quick: bool
) -> dict[str, list[Row]]:
    opened = {}
    for size in track(sizes, f"{backend.name}: filling", transient=True):
        (folder / str(size)).mkdir()
        opened[size] = stack.enter_context(backend.open(folder / str(size)))
        opened[size].fill(size, FOR_EVER)
    return {
        verb: race(
            [Contender(f"{size:,}", getattr(opened[size].sides[1], verb), size == sizes[0]) for size in sizes],
            rounds=9 if quick else 41,
            calls=50 if quick else 100,
            title=f"{backend.name}: {verb}",
            cpu_time=backend.cpu_time,
        )
        for verb in ("new", "replay")
    }


def by_workers(backend: Backend, *, seconds: float) -> dict[str, dict[int, float]]:
    rates: dict[str, dict[int, float]] = {}
    for kind, start in (("threads", threading.Thread), ("processes", _context.Process)):
        rates[f"{backend.name}, {kind}"] = {}
        for workers in track(WORKERS, f"{backend.name}, {kind}", transient=True):
            with tempfile.TemporaryDirectory() as folder, backend.open(Path(folder)) as opened:
                if opened.again is None:
                    return {}  # no other process sees its records
                done, ready = _context.Value("q", 0), _context.Barrier(workers + 1)
                crowd = [start(target=work, args=(opened.again, seconds, ready, done)) for _ in range(workers)]
                for worker in crowd:
                    worker.start()
                ready.wait()
                for worker in crowd:
                    worker.join()
                rates[f"{backend.name}, {kind}"][workers] = done.value / seconds
    return rates


def work(again: Callable[[], Store], seconds: float, ready: threading.Barrier, done: object) -> None:
    store = again()
    new, count = ours(store).new, 0
    ready.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        new(5)
        count += 5
    with done.get_lock():  # type: ignore[attr-defined] # a shared number
        done.value += count  # type: ignore[attr-defined]
    store.close()


def show_rates(console: Console, rates: dict[str, dict[int, float]]) -> None:
    table = Table(title="New requests a second, all workers together", title_justify="left")
    table.add_column("", no_wrap=True)
    for workers in WORKERS:
        table.add_column(str(workers), justify="right")
    for title, found in rates.items():
        table.add_row(title, *(f"{found[workers]:,.0f}" for workers in WORKERS))
    console.print(table)


_context = multiprocessing.get_context("fork")  # each worker opens a store of its own


if __name__ == "__main__":
    main()
