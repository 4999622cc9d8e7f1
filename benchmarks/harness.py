"""Times contenders against each other on a noisy machine, and shows what came of it.

Absolute times drift with the neighbours of the machine; so every contender runs in every round, the order
is drawn anew each time, and what counts is the median over the rounds of the ratio to the round's base.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Contender:
    """Something to time.

    Attributes:
        name: shown in the table.
        run: does the work `calls` times.
        base: whether the others are compared with it.
    """

    name: str
    run: Callable[[int], None]
    base: bool = False


@dataclass(frozen=True)
class Row:
    """What came of a contender. Microseconds a call; `ratio` is to the base, median of the rounds.

    Attributes:
        name: of the contender.
        micros: median of the rounds.
        low: lower quartile.
        high: upper quartile.
        ratio: to the base; 1 for the base itself.
        added: microseconds above the base, median of the rounds.
    """

    name: str
    micros: float
    low: float
    high: float
    ratio: float
    added: float


def race(
    contenders: Sequence[Contender],
    *,
    rounds: int,
    calls: int,
    title: str,
    cpu_time: bool = False,
    clock: Callable[[], int] | None = None,
) -> list[Row]:
    """Runs every contender in each of `rounds`, `calls` calls at a time, in an order drawn anew.

    Time is wall time, this process's processor time, or what `clock` says in nanoseconds.
    """
    now = clock or (process_time_ns if cpu_time else perf_counter_ns)
    took: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for contender in contenders:
        contender.run(max(1, calls // 10))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    gc.freeze()  # what is there is not gone through at each collection
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=rounds * len(contenders))
        for _ in range(rounds):
            for contender in random.sample(list(contenders), len(contenders)):
                gc.collect()
                gc.disable()
                started = now()
                contender.run(calls)
                elapsed = now() - started
                gc.enable()
                took[contender.name].append(elapsed / calls / 1000)
                progress.advance(bar)
    gc.unfreeze()
    (base,) = (took[contender.name] for contender in contenders if contender.base)
    return [_row(contender.name, took[contender.name], base) for contender in contenders]


def _row(name: str, times: list[float], base: list[float]) -> Row:
    ordered = sorted(times)
    return Row(
        name,
        median(times),
        ordered[len(ordered) // 4],
        ordered[len(ordered) * 3 // 4],
        median(mine / theirs for mine, theirs in zip(times, base, strict=True)),
        median(mine - theirs for mine, theirs in zip(times, base, strict=True)),
    )


def arguments(description: str) -> argparse.ArgumentParser:
    """The command line that all benchmarks share: ``--quick`` and ``--json FILE``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a figure to quote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser


def show(title: str, rows: Sequence[Row]) -> None:
    """Prints a table of the rows."""
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for column in ("µs a call", "quartiles", "ratio", "added µs"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            f"{row.micros:.1f}",
            f"{row.low:.1f}-{row.high:.1f}",
            f"{row.ratio:.2f}",
            f"{row.added:+.1f}",
        )
    Console(width=max(100, Console().width)).print(table)


def machine(*distributions: str) -> dict[str, str]:
    """What the figures were measured on, with the versions of what took part."""
    facts = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
    }
    for name in ("idemcore", *distributions):
        with suppress(metadata.PackageNotFoundError):  # a peer that does not install everywhere
            facts[name] = metadata.version(name)
    return facts


def save(path: Path, facts: dict[str, str], groups: dict[str, Sequence[Row]]) -> None:
    """Writes the figures as JSON."""
    content = {
        "machine": facts,
        "groups": {title: [vars(row) for row in rows] for title, rows in groups.items()},
    }
    path.write_text(json.dumps(content, indent=2) + "\n")


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
