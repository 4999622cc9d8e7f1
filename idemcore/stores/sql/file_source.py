"""Where connections to a SQLite file come from: a stack of idle ones, all closed before a fork.

SQLite keeps its locks in the process, by file and not by connection: a child that inherits an open
connection believes to hold locks that it does not have, and when the parent closes, the write-ahead log is
deleted under the child. So the store's own connections to a file are closed before a fork, and a fork waits
for the verbs that are under way.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Generator
from typing import Any, Final

from idemcore import forked

_LONGEST_VERB: Final = 10.0
"""Seconds that a fork waits for other threads' verbs: longer than any of them waits for a lock."""

_MOST_IDLE: Final = 16
"""Connections that are kept for the next verb."""


class _Loan:
    """A connection to a file is with somebody, since the file's connections were closed last."""

    __slots__ = ("__weakref__", "generation")

    generation: int


class File(forked.Forkable):
    """Connections to a file: opening one is cheap, and a stack of idle ones cheaper than a pool.

    Args:
        connect: opens one, all set up.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._door = threading.Lock()  # guards what follows; kept closed while a fork is under way
        self._idle: list[Any] = []
        self._out: weakref.WeakSet[_Loan] = weakref.WeakSet()  # one that an interrupt drops is not waited for
        self._generation = 0
        forked.register(self)

    def take(self) -> tuple[Any, Any]:
        """The one that was used last, or a new one."""
        loan = _Loan()
        with self._door:
            loan.generation = self._generation
            self._out.add(loan)
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            try:
                connection = self._connect()
            except BaseException:
                self._returned(loan)
                raise
        return connection, (connection, loan)

    def give(self, taken: Any, *, broken: BaseException | None = None) -> None:
        """Back on the stack; away where it is full, closed meanwhile, or the connection may be broken."""
        connection, loan = taken
        with self._door:
            if broken is None and loan.generation == self._generation and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                self._out.discard(loan)
                return
        try:
            connection.close()  # before the loan ends, which is what a fork waits for
        finally:
            self._returned(loan)

    def refresh(self) -> None:
        """A file is not a server: nothing dies of itself."""

    def close(self) -> None:
        """Closes the idle ones now, and those in use when they come back. A later verb opens new ones."""
        with self._door:
            self._close_idle()

    def at_rest(self) -> Generator[None]:
        """Waits for the verbs under way, closes all connections, and keeps the door closed."""
        give_up_at = time.monotonic() + _LONGEST_VERB
        while True:
            with self._door:
                if not self._out or time.monotonic() >= give_up_at:
                    self._close_idle()
                    yield
                    return
            time.sleep(0.001)

    def start_in_child(self) -> None:
        """New connections. One that was not closed in time is neither used nor closed here."""
        self._door = threading.Lock()
        self._out = weakref.WeakSet()
        self._generation += 1
        forked.left_to_parent.extend(self._idle)
        self._idle = []

    def _returned(self, loan: _Loan) -> None:
        with self._door:
            self._out.discard(loan)

    def _close_idle(self) -> None:
        self._generation += 1
        while self._idle:
            self._idle.pop().close()
