"""The table of backends: how each is made ready, opened by a worker, and troubled in the long form."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import MetaData, create_engine, text

from idemcore import MemoryStore
from idemcore.stores.base import Store
from idemcore.stores.redis import RedisStore
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.stores.network import network
from tests.stores.private_mariadb import private_mariadb
from tests.stores.private_postgres import private_postgres
from tests.stores.redis_server import private_server


@dataclass(frozen=True)
class Place:
    """Where the records are. What a worker process needs of it can be pickled.

    Attributes:
        backend: its name in `BACKENDS`.
        url: that workers use, through a network where there is one to be troubled.
        store: the one that all threads share, where workers are threads.
        troubles: what may be done to it beside killing workers, by name.
        skew: seconds by which two workers' clocks may differ, where the store takes the host's clock.
    """

    backend: str
    url: str = ""
    store: Store | None = None
    troubles: dict[str, Callable[[], None]] = field(default_factory=dict)
    skew: float = 0.0

    def for_worker(self) -> Place:
        """Without what stays with the director."""
        return Place(self.backend, self.url, self.store, {}, self.skew)

    def open(self, ahead: float = 0.0) -> Store:
        """A worker's store, its host's clock so many parts of `skew` ahead (-0.5 to 0.5)."""
        return BACKENDS[self.backend].open(self, ahead)


@dataclass(frozen=True)
class Backend:
    """One row of the table.

    Attributes:
        threads: workers are threads of one process, so none can be killed or stopped.
        orders: a caller's own rows can share a transaction with their record.
        ready: makes a place, its schema made; with troubles where it is asked for them.
        open: a worker's store on it.
    """

    threads: bool
    orders: bool
    ready: Callable[[Path, bool], contextlib.AbstractContextManager[Place]]
    open: Callable[[Place, float], Store]


@contextlib.contextmanager
def _memory(folder: Path, troubled: bool) -> Iterator[Place]:
    yield Place("memory", store=MemoryStore())


def _open_memory(place: Place, ahead: float) -> Store:
    if place.store is None:
        raise RuntimeError("threads share one store")
    return place.store


@contextlib.contextmanager
def _sqlite(folder: Path, troubled: bool) -> Iterator[Place]:
    url = f"sqlite:///{folder / 'records.db'}"
    _make_tables(url)
    yield Place("sqlite", url, skew=0.3 if troubled else 0.0)


def _make_tables(url: str) -> None:
    store = SQLAlchemyStore(url)
    store.create_schema()
    store.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (of_key VARCHAR(255), token VARCHAR(64))"))
    engine.dispose()


def _open_sqlite(place: Place, ahead: float) -> Store:
    return SQLAlchemyStore(place.url, clock=lambda: time.time() + ahead * place.skew)


def _set_clock_wrong(ahead: float) -> None:
    """This host's clock is up to 45 seconds off; only a store that reads it would mind."""
    real = time.time
    time.time = lambda: real() + 90 * ahead


@contextlib.contextmanager
def _postgres(folder: Path, troubled: bool) -> Iterator[Place]:
    with private_postgres() as server, network(server.port) as net:
        _make_tables(server.url())

        def delay() -> None:
            net.delay = 0.0 if net.delay else 0.02

        def cut(way: str, count: int) -> Callable[[], None]:
            return lambda: net.cut_after("there" if way == "there" else "back", count)

        troubles: dict[str, Callable[[], None]] = {
            "restart": server.restart,
            "delay": delay,
            **{f"cut {way} {count}": cut(way, count) for way in ("there", "back") for count in (0, 137, 1009)},
        }
        yield Place(
            "postgres", server.url(port=net.port if troubled else None), troubles=troubles if troubled else {}
        )


def _open_on_server(place: Place, ahead: float) -> Store:
    _set_clock_wrong(ahead)
    return SQLAlchemyStore(place.url, table=idempotency_table(MetaData()))


@contextlib.contextmanager
def _mariadb(folder: Path, troubled: bool) -> Iterator[Place]:
    with private_mariadb() as server, network(server.port) as net:
        _make_tables(server.url())
        troubles: dict[str, Callable[[], None]] = {
            "restart": server.restart,
            **{
                f"cut {way} {count}": partial(net.cut_after, way, count)
                for way in ("there", "back")
                for count in (0, 137, 1009)
            },
        }
        yield Place(
            "mariadb", server.url(port=net.port if troubled else None), troubles=troubles if troubled else {}
        )


@contextlib.contextmanager
def _redis(folder: Path, troubled: bool) -> Iterator[Place]:
    # Each write waits for the disk: a restart that loses some would be Redis' fault and not the store's.
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    with private_server(folder, *durable) as server, network(server.port) as net:

        def restart() -> None:
            server.kill()
            server.start()

        troubles: dict[str, Callable[[], None]] = {"restart": restart, "cut": net.cut}
        url = f"redis://127.0.0.1:{net.port}/0" if troubled else server.url
        yield Place("redis", url, troubles=troubles if troubled else {})


def _open_redis(place: Place, ahead: float) -> Store:
    _set_clock_wrong(ahead)
    return RedisStore(place.url)


BACKENDS: Final = {
    "memory": Backend(threads=True, orders=False, ready=_memory, open=_open_memory),
    "sqlite": Backend(threads=False, orders=True, ready=_sqlite, open=_open_sqlite),
    "postgres": Backend(threads=False, orders=True, ready=_postgres, open=_open_on_server),
    "mariadb": Backend(threads=False, orders=True, ready=_mariadb, open=_open_on_server),
    "redis": Backend(threads=False, orders=False, ready=_redis, open=_open_redis),
}


@contextlib.contextmanager
def ready(backend: str, *, troubled: bool) -> Iterator[tuple[Place, Path]]:
    """A place, and a folder for what happens there."""
    with (
        tempfile.TemporaryDirectory(prefix="idemcore-torture-") as name,
        BACKENDS[backend].ready(Path(name), troubled) as place,
    ):
        yield place, Path(name)
