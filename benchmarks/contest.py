"""Who takes part in the benchmarks of stores, and what each figure may be at the most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.backends import memory, postgresql, sqlite
from benchmarks.server_backends import mariadb, redis


@dataclass(frozen=True)
class Backend:
    """A backend of the benchmark.

    Attributes:
        name: shown.
        open: gives it for as long as the context lasts; raises what its driver raises where it is not there.
        cpu_time: whether processor time is what counts; wall time where a server works too.
        goals: the most that each figure may be.
    """

    name: str
    open: Callable[[Path], Any]
    cpu_time: bool
    goals: dict[str, float]


BACKENDS = [
    Backend("memory", memory, cpu_time=True, goals={"new": 4, "replay": 3.5, "bytes": 1_000}),
    Backend("SQLite", sqlite, cpu_time=True, goals={"new": 2.5, "replay": 3}),
    Backend(
        "PostgreSQL, psycopg 3",
        lambda _: postgresql("psycopg"),
        cpu_time=False,
        goals={"new": 1.35, "replay": 1.9, "sweep": 25, "foreground": 5},
    ),
    Backend("PostgreSQL, psycopg2", lambda _: postgresql("psycopg2"), cpu_time=False, goals={}),
    Backend("MariaDB", mariadb, cpu_time=False, goals={"new": 1.6, "replay": 1.6, "sweep": 40}),
    Backend("Redis", redis, cpu_time=False, goals={"new": 1.3, "replay": 1.3}),
]
