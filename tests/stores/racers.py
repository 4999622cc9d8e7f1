"""What racing processes and threads do with one store, and what it takes to start them at one moment."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import MetaData

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Stored
from idemcore.stores.base import Store
from idemcore.stores.sql import DEFAULT_NAME, SQLAlchemyStore, idempotency_table

ANSWER = Answer("http", b"{}", b"done")

APART = multiprocessing.get_context("forkserver")
_DRIVERS = ("sqlalchemy.dialects.postgresql.psycopg", "psycopg", "sqlalchemy.dialects.mysql.pymysql", "pymysql")
# Imported once, not eight times; what is not installed is passed over.
APART.set_forkserver_preload([__name__, *_DRIVERS, "idemcore.stores.redis"])

BEFORE = ("new", "lease over", "past retention")
"""What may stand under a key that is granted to one of all who ask."""


def claim(key: str, *, attempt: int = 1) -> Claim:
    """A claim with a token of its own."""
    return Claim(
        Identity("tenant", "race", key), "v1.x:1", os.urandom(16), attempt, 3600.0, 7200.0, 86_400.0, False
    )


def open_at(url: str, table: str = DEFAULT_NAME) -> Store:
    """A store on one table, or in Redis under one prefix."""
    if url.startswith("redis://"):
        from idemcore.stores.redis import RedisStore  # only where there is a server for it

        return RedisStore(url, prefix=table)
    return SQLAlchemyStore(url, table=idempotency_table(MetaData(), name=table))


def leave(store: Store, keys: list[str], before: str, age: Callable[[None, float], None]) -> None:
    """Makes every key what it is to be before the race; `age` makes all records so many seconds older."""
    if before == "new":
        return
    for key in keys:
        made = claim(key)
        store.reserve(made)
        if before == "past retention":
            store.complete(made, ANSWER)
    age(None, 3601 if before == "lease over" else 1_000_000)


class Race(NamedTuple):
    """What came of a race: no error, each key once, every record in one state, if all is well."""

    errors: list[str]
    granted: list[str]
    states: set[State]


def race(url: str, table: str, keys: list[str]) -> Race:
    """Eight processes go for every key, from one moment on; all reports, and what the store then holds."""
    reports = together(8, go_for_all, url, table, keys)
    store = open_at(url, table)
    records = [found.record for found in store.find(limit=1_000)]
    store.close()
    return Race(
        [error for _, errors in reports for error in errors],
        sorted(key for granted, _ in reports for key in granted),
        {record.state for record in records if isinstance(record, Record)},
    )


def go_for_all(url: str, table: str, keys: list[str], barrier: Any) -> tuple[list[str], list[str]]:
    """What this process was granted, and what went wrong."""
    store = open_at(url, table)
    granted: list[str] = []
    errors: list[str] = []
    barrier.wait(timeout=60)
    for key in keys:
        mine = claim(key)
        try:
            record = store.reserve(mine)
            if isinstance(record, Record) and record.state is State.CLAIMED and not record.lease_stands:
                got_it = store.take_over(record.token, mine._replace(attempt=record.attempt + 1))
            else:
                got_it = record is None
            if got_it:
                granted.append(key)
                store.complete(mine, ANSWER)
        except Exception as error:  # whatever it is, the test wants to see it
            errors.append(repr(error))
    store.close()
    return granted, errors


def make_schema(url: str, table: str, barrier: Any) -> None:
    """Makes the schema at the same moment as the other processes, and uses it."""
    store = open_at(url, table)
    barrier.wait(timeout=60)
    store.create_schema()
    store.reserve(claim(str(os.getpid())))
    store.close()


def together(count: int, act: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What so many processes give back that are given one barrier, behind the other arguments."""
    return _reports(APART, [act] * count, (*arguments, APART.Barrier(count)))


FORKED = [(20, False), (20, False), (20, False), (20, True)]
"""What forked workers report, sorted, if all is well: every key of their own, and the common one once."""


def forked_workers(store: Store) -> list[tuple[int, bool]]:
    """What four workers report, sorted, that are forked with this store."""
    acts = [lambda name=name: use_after_fork(store, name) for name in "abcd"]
    return sorted(_reports(multiprocessing.get_context("fork"), acts, ()))


def use_after_fork(store: Store, name: str) -> tuple[int, bool]:
    """What a forked worker does: twenty keys of its own, one of everybody's, then a clean end."""
    granted = 0
    for number in range(20):
        made = claim(f"{name}-{number}")
        granted += store.reserve(made) is None
        store.complete(made, ANSWER)
    shared = store.reserve(claim("shared"))
    store.close()
    return granted, shared is None


@contextmanager
def writing(store: Store) -> Iterator[None]:
    """A thread of this process writes one record over and over meanwhile."""
    stop = threading.Event()

    def write_on() -> None:
        while not stop.is_set():
            store.complete(claim("busy"), ANSWER)

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(write_on)
        try:
            yield
        finally:
            stop.set()
        busy.result()


def overlap(store: Store) -> None:
    """Eight threads claim, wait until all have, and complete."""
    inside = threading.Barrier(8)

    def work(number: int) -> None:
        made = claim(f"t-{number}")
        assert store.reserve(made) is None
        inside.wait(timeout=60)
        assert store.complete(made, ANSWER) == Stored()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def _reports(context: Any, acts: list[Callable[..., Any]], arguments: tuple[Any, ...]) -> list[Any]:
    """What each act gives back in a process of its own, in the order in which they end."""
    results = context.SimpleQueue()
    processes = [context.Process(target=_report, args=(act, arguments, results)) for act in acts]
    for process in processes:
        process.start()
    reports = [results.get() for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
        process.close()
    results.close()
    assert [trouble for _, trouble in reports if trouble] == []
    return [report for report, _ in reports]


def _report(act: Callable[..., Any], arguments: tuple[Any, ...], results: Any) -> None:
    """A failure is told as well, or the test would wait for it for ever."""
    try:
        results.put((act(*arguments), ""))
    except BaseException:
        results.put((None, traceback.format_exc()))
