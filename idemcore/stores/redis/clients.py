"""Who sends a command: a client with a connection to itself, so that it alone is cut when its verb is struck.
A caller's pool gets the connection back after each verb; of the store's own pool some are kept.

Whenever redis-py's pool hands a connection out, it looks whether there is something to read, which takes the
process about as long as sending a command and reading its answer (measured with redis-py 8.1: a replay costs
1.4 times a GET through the pool, and 1.05 times with a connection that is kept). What the look finds is a
connection that the server has closed meanwhile, or one that still owes an answer. So a connection that was
used a moment ago goes without it: where it did die since, redis-py sends the command again. And no connection
is put on the stack but by a command that has read its answer.
"""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from traceback import walk_tb
from typing import Any, Final

from redis import VERSION, RedisCluster

from idemcore import forked

_MOST_IDLE: Final = 16
"""Connections that are kept for the next verb."""

_FRESH: Final = 1.0
"""Seconds for which a connection is not looked at: after a longer rest it may have been hung up on, and sending
again begins with a pause.
"""

_FOR: Final = ("_",) if VERSION < (5, 3) else ()
"""What a pool wants to be told of the command: a name until redis-py 5.3, which warns of it."""


class Clients(forked.Forkable):
    """Clients for one command each.

    Args:
        client: of redis-py, for a server or a cluster.
        owned: whether it is the store's own, so that connections of its pool may be kept.
    """

    def __init__(self, client: Any, *, owned: bool) -> None:
        self._client = client
        # The other half of a small pool is for whatever else is asked through it.
        self._most_idle = min(_MOST_IDLE, client.connection_pool.max_connections // 2) if owned else 0
        self._idle: list[tuple[Any, float]] = []
        forked.register(self)

    def take(self) -> Any:
        """A client: to be given back once it has read its answer, and else dropped or cut."""
        if not self._most_idle:
            return alone(self._client)
        try:
            client, rests_since = self._idle.pop()
        except IndexError:
            return alone(self._client)
        if monotonic() - rests_since < _FRESH:
            return client
        client.close()  # its connection is back in the pool, and the first one to be looked at
        return alone(self._client)

    def give(self, client: Any) -> None:
        """Back for the next command."""
        if len(self._idle) < self._most_idle:
            self._idle.append((client, monotonic()))
        else:
            self.drop(client)

    def drop(self, client: Any) -> None:
        """Its connection returns to the pool, which looks at it before it is used again."""
        if client is not self._client:
            client.close()

    def cut(self, client: Any, error: BaseException) -> None:
        """Its connection may owe an answer, which nobody must read."""
        cut(client, error)
        self.drop(client)

    def clear(self) -> None:
        """All connections return to the pool."""
        with suppress(IndexError):
            while True:  # another thread may be taking them too
                self._idle.pop()[0].close()

    def start_in_child(self) -> None:
        """A child uses none of its parent's connections; redis-py's pool starts anew there by itself."""
        forked.left_to_parent.extend(self._idle)
        self._idle = []


def alone(client: Any) -> Any:
    """A client like this one that has a connection of its pool to itself, and gives it back when it is closed.

    Itself, where it has one already; and a cluster's, which finds the connection by the record.
    """
    if isinstance(client, RedisCluster) or client.connection is not None:
        return client
    # Not client.client(), which costs three commands' time: it makes a table of all commands anew.
    # Made in one step: for a moment more, a copy would close the pool at its end as the original does.
    mine = object.__new__(type(client))
    vars(mine).update({**vars(client), "auto_close_connection_pool": False})
    mine.connection = client.connection_pool.get_connection(*_FOR)
    return mine


def cut(client: Any, error: BaseException) -> None:
    """Disconnects what was in use where the error struck; a connection is made anew when it is used again.

    The pool may have handed out to a client, and got back, one that was not yet greeted; and a cluster's client
    tells nobody which connection it uses. Then the frames of redis-py that the error has left still name it.
    """
    connections = [] if isinstance(client, RedisCluster) else [client.connection]
    for frame, _ in walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).startswith("redis."):
            connections += [value for value in frame.f_locals.values() if hasattr(value, "send_packed_command")]
    for connection in connections:
        if connection is not None:
            with suppress(Exception):
                connection.disconnect()
