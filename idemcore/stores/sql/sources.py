"""Where connections to a server come from: a caller's pool, or one of the store's with a stack before it.

A connection is taken for one verb and given back, so none is held while a caller's code runs. A caller's own
comes back as it was, wherever an exception from a signal may strike: the pool puts it back, not the verb.

Two processes must not talk through one connection. A forked child of a pool starts with an empty one;
what it inherited is neither used nor closed, since closing it would end the parent's session.
A file needs more than that: see `file_source`.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from sqlalchemy import Engine, event
from sqlalchemy.pool import ConnectionPoolEntry, Pool, PoolProxiedConnection, SingletonThreadPool, StaticPool

from idemcore import forked
from idemcore.errors import ConfigurationError

_KEPT: Final = 5
_MORE: Final = 10
"""Connections to a server, at rest and above that when many verbs come together: SQLAlchemy's own numbers."""

POOL: Final[dict[str, Any]] = {
    "pool_size": _KEPT,
    "max_overflow": _MORE,
    # Last in, first out: what has its statements prepared, and is the least likely to have been hung up on.
    "pool_use_lifo": True,
    "pool_reset_on_return": None,
}
"""How the engine for `OwnEngine` is made."""

_BEFORE: Final = "idemcore_before"
"""Under this name a connection's record has how to put it back out of autocommit."""


class Source(Protocol):
    """Connections of the driver's, in autocommit."""

    def take(self) -> tuple[Any, Any]:
        """A connection, and what `give` wants to have back."""
        ...

    def give(self, taken: Any, *, broken: BaseException | None = None) -> None:
        """Back for the next verb, or away where it may be broken."""
        ...

    def refresh(self) -> None:
        """One connection was found dead: gives the idle ones up, where they are the source's own."""
        ...

    def close(self) -> None:
        """Closes what the source itself opened."""
        ...


class Autocommit(Protocol):
    """How a caller's connection is put into autocommit and back."""

    def enter(self, connection: Any) -> Any:
        """Puts it into autocommit; returns what `leave` needs."""
        ...

    def leave(self, connection: Any, before: Any) -> None:
        """Puts it back."""
        ...


class CallersEngine(forked.Forkable):
    """Connections from an engine that the caller made, keeps and disposes."""

    def __init__(self, engine: Engine, autocommit: Autocommit) -> None:
        if isinstance(engine.pool, (StaticPool, SingletonThreadPool)):
            raise ConfigurationError(
                f"This engine's {type(engine.pool).__name__} hands one connection to several users at once, so "
                "a record would commit your own open transaction. Give the store an engine with another pool, "
                "or a URL."
            )
        self._engine = engine
        self._autocommit = autocommit
        self._inherited: Pool | None = None
        self._instead: Pool | None = None  # after a fork, for as long as the engine has the inherited pool
        if not event.contains(engine, "checkin", _put_back):
            event.listen(engine, "checkin", _put_back)
        forked.register(self)

    def take(self) -> tuple[Any, Any]:
        """From the engine's pool; in a forked child from one of the child's own."""
        if self._instead is not None and self._engine.pool is self._inherited:
            proxy = self._instead.connect()
        else:
            proxy = self._engine.raw_connection()
        try:
            before = self._autocommit.enter(proxy.dbapi_connection)
            proxy.info[_BEFORE] = self._autocommit.leave, before
        except BaseException as error:
            _discard(proxy, error)
            raise
        return proxy.dbapi_connection, proxy

    def give(self, taken: Any, *, broken: BaseException | None = None) -> None:
        """Back to its pool, which puts it back as it was."""
        if broken is not None:
            _discard(taken, broken)
        else:
            taken.close()

    def refresh(self) -> None:
        """The pool is the caller's (`pool_pre_ping` is theirs to set)."""

    def close(self) -> None:
        """The engine stays as it is."""
        if self._instead is not None:
            self._instead.dispose()

    def start_in_child(self) -> None:
        """A pool of its own. What to do with the engine before a fork is the caller's to know."""
        forked.left_to_parent.extend(pool for pool in (self._engine.pool, self._instead) if pool is not None)
        self._inherited = self._engine.pool
        self._instead = self._inherited.recreate()


class OwnEngine(forked.Forkable):
    """Connections from an engine that the store made: set up when they connect, in autocommit for good.

    The pool says how many there may be, and who waits. To take one from it and give that back is a seventh of a
    replay's time (17 µs of 126, beside PyMySQL), so a few stay here between two verbs, for as long as nobody
    can be waiting for them.

    Args:
        engine: made with `POOL`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: list[tuple[PoolProxiedConnection, Pool]] = []
        forked.register(self)

    def take(self) -> tuple[Any, Any]:
        """The one that was used last, or one of the pool's."""
        pool = self._engine.pool
        while taken := self._kept():
            if taken[1] is pool:
                return taken[0].dbapi_connection, taken
            _discard(taken[0], None)
        proxy = self._engine.raw_connection()
        return proxy.dbapi_connection, (proxy, pool)

    def give(self, taken: Any, *, broken: BaseException | None = None) -> None:
        """For the next verb; to the pool where all are out, for somebody may be waiting there then; away where
        the pool was given up meanwhile, which would never close it.
        """
        proxy, pool = taken
        all_out = pool.checkedout() >= _KEPT + _MORE
        if broken is not None or pool is not self._engine.pool:
            _discard(proxy, broken)
        elif len(self._idle) < _KEPT and not all_out:
            self._idle.append(taken)
        else:
            proxy.close()

    def refresh(self) -> None:
        """What ended one connection, a restart or a time-out, has most likely ended the other idle ones too."""
        self.close()

    def close(self) -> None:
        """Closes all that are not in use."""
        self._engine.dispose()
        while taken := self._kept():
            _discard(taken[0], None)

    def start_in_child(self) -> None:
        """An empty pool: a child uses nothing of its parent's."""
        forked.left_to_parent.extend((self._engine.pool, self._idle))
        self._idle = []
        self._engine.dispose(close=False)

    def _kept(self) -> tuple[PoolProxiedConnection, Pool] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None


def _put_back(connection: Any, record: ConnectionPoolEntry) -> None:
    """As a connection comes back to its pool: also one that nobody gave back, for an interrupt dropped it."""
    leave, before = record.info.pop(_BEFORE, (None, None))
    if leave is not None and connection is not None:
        try:
            leave(connection, before)
        except Exception as error:  # what was recorded stands; the next user gets another connection
            record.invalidate(error)


def _discard(proxy: PoolProxiedConnection, error: BaseException | None) -> None:
    proxy.invalidate(error)
    proxy.close()
