"""The way to the server: scripts sent by their digest, errors of redis-py turned into this library's own.

A server that was restarted, or a replica that was promoted, does not know a script: then its text is
sent. redis-py sends a command again when its connection died, which every script allows. Before the
first script the server is asked whether it evicts: one that does forgets what has run.

redis-py gives a connection back to its pool also where an exception from a signal struck between sending and
reading, and the next command would read that one's answer as its own: a claim that was never granted. So
whatever is no error of redis-py's costs the verb its connection, and nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from redis import Redis, RedisCluster, exceptions
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from idemcore.errors import ConfigurationError
from idemcore.stores.redis.clients import Clients, alone, cut
from idemcore.stores.redis.errors import RAISED, is_cut_off, meaning, refuse
from idemcore.stores.redis.scripts import Script
from idemcore.stores.url_options import name_in, unknown_option

Keys = tuple[bytes, bytes]
"""A record and the index beside it: they have one slot."""

_TIMEOUT: Final = 3.0
"""Seconds that a server may take to answer, or to accept a connection."""

_RETRIES: Final = 1
"""A connection that died while it was idle is replaced, and the command sent once more."""


class Server:
    """One Redis server, or a cluster of them.

    Args:
        url_or_client: ``redis://``, ``rediss://`` or ``unix://``; or a client of yours, which is used as
            it is and never closed.
        allow_eviction: whether a server may be used that evicts.

    Raises:
        ConfigurationError: not such a URL, or a client that cannot be used.
    """

    def __init__(self, url_or_client: str | Redis | RedisCluster, *, allow_eviction: bool) -> None:
        self._allow_eviction = allow_eviction
        self._asked = allow_eviction
        self._owned = isinstance(url_or_client, str)
        client = _connect(url_or_client) if isinstance(url_or_client, str) else url_or_client
        if not isinstance(client, (Redis, RedisCluster)):
            raise ConfigurationError(
                "RedisStore takes a URL, a redis.Redis or a redis.cluster.RedisCluster, not "
                f"{type(url_or_client).__name__}."
            )
        if _option(client, "decode_responses"):
            raise ConfigurationError(
                "This client decodes what it reads, and records are bytes: give the store one without "
                "decode_responses."
            )
        # Any: redis-py's types say of every answer that it may be an awaitable, and of some calls nothing.
        self._client: Any = client
        self._clustered = isinstance(client, RedisCluster)
        self._clients = Clients(client, owned=self._owned)

    def run(self, script: Script, keys: Keys, *arguments: bytes | float | str) -> Any:
        """One script on one record."""
        if not self._asked:
            self.refuse_eviction()
        client = self._client
        try:
            client = self._clients.take()
            try:
                result = client.execute_command("EVALSHA", script.digest, 2, *keys, *arguments)
            except exceptions.NoScriptError:
                result = client.execute_command("EVAL", script.text, 2, *keys, *arguments)
        except RAISED as error:
            self._clients.drop(client)
            refuse(error)
        except BaseException as error:  # as `_asking`, which would cost more than the question
            self._clients.cut(client, error)
            if is_cut_off(error):
                refuse(error)
            raise
        self._clients.give(client)
        return result

    def run_each(self, script: Script, keys: Sequence[Keys]) -> list[Any]:
        """One script on each of several records, sent together where they are on one server."""
        if self._clustered:
            return [self.run(script, pair) for pair in keys]
        results = self._together([("EVALSHA", script.digest, 2, *pair) for pair in keys])
        # The server was restarted, or its scripts flushed, perhaps in the middle of them.
        again = [
            number for number, result in enumerate(results) if isinstance(result, exceptions.NoScriptError)
        ]
        texts = [("EVAL", script.text, 2, *keys[number]) for number in again]
        if again:
            for number, result in zip(again, self._together(texts), strict=True):
                results[number] = result
        return _checked(results)

    def ask_each(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Several commands that only read, each with one key."""
        if not self._clustered:
            return _checked(self._together(commands))
        self._ask_first()
        with _asking(self._client) as client:
            return [client.execute_command(*command) for command in commands]

    def scan(self, pattern: bytes, node: str, cursor: int, count: int) -> tuple[str, int, list[bytes]]:
        """A step of a walk through the names of all servers, begun with no node.

        Returns:
            Where the next step begins (no node: there is none), and names.
        """
        self._ask_first()
        nodes = sorted(self._nodes().items())
        if not node:
            node = nodes[0][0]
        client = dict(nodes).get(node)
        names: list[bytes] = []
        if client is not None:
            with _asking(client) as mine:
                cursor, names = mine.scan(cursor, match=pattern, count=count)
        else:  # it has left the cluster since
            cursor = 0
        if cursor:
            return node, int(cursor), names
        return next((name for name, _ in nodes if name > node), ""), 0, names

    def now(self) -> float:
        """The time by one server, in microseconds."""
        with _asking(next(iter(self._nodes().values()))) as client:
            seconds, rest = client.time()
        return float(seconds) * 1_000_000 + float(rest)

    def refuse_eviction(self) -> None:
        """Looks at every server's maxmemory-policy.

        Raises:
            ConfigurationError: one evicts, or does not let this user know.
            StoreUnavailable: one cannot be reached.
        """
        if not self._allow_eviction:
            for node in self._nodes().values():
                with _asking(node) as client:
                    policy = _policy(client)
                if policy != "noeviction":
                    raise _evicts(policy)
        self._asked = True

    def close(self) -> None:
        """Closes the connections of a client of the store's own."""
        if self._owned:
            self._clients.clear()
            self._client.connection_pool.disconnect()

    def _ask_first(self) -> None:
        if not self._asked:
            self.refuse_eviction()

    def _nodes(self) -> dict[str, Any]:
        """A client for each server that takes writes, by name."""
        if not self._clustered:
            return {"-": self._client}
        try:
            return {node.name: self._client.get_redis_connection(node) for node in self._client.get_primaries()}
        except RAISED as error:
            refuse(error)

    def _together(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What each command gave, errors included: redis-py's own report of one would quote the key."""
        self._ask_first()
        with _asking(self._client) as client:
            # Not redis-py's pipeline, which takes a connection of its own that nobody could name.
            connection = client.connection

            def ask() -> list[Any]:
                connection.send_packed_command(connection.pack_commands(commands))
                return [_read(connection) for _ in commands]

            results: list[Any] = connection.retry.call_with_retry(ask, lambda _: connection.disconnect())
        return results


@contextmanager
def _asking(client: Any) -> Iterator[Any]:
    """A client for some questions. Errors leave as this library's, and no connection that may owe an answer."""
    mine = client
    try:
        mine = alone(client)
        yield mine
    except RAISED as error:
        refuse(error)
    except BaseException as error:
        cut(mine, error)
        if is_cut_off(error):
            refuse(error)
        raise
    finally:
        if mine is not client:
            mine.close()


def _read(connection: Any) -> Any:
    try:
        return connection.read_response()
    except exceptions.ResponseError as error:
        return error


def _connect(url: str) -> Redis:
    try:
        client: Redis = Redis.from_url(
            url,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), _RETRIES),
            retry_on_error=[exceptions.ConnectionError, exceptions.TimeoutError],
        )
        # For nothing, and without connecting: redis-py looks at the options no sooner.
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
        _refuse_no_number(url)
        return client
    except (ValueError, TypeError) as error:
        if (name := name_in(error)) is not None:
            raise unknown_option(url.partition("://")[0], name) from None
        # Not chained: what it quotes may hold a password.
        scheme = url.partition("://")[0] if "://" in url else ""
        raise ConfigurationError(
            f"This is no URL of a Redis server ({scheme}://…): it looks like redis://host:6379/0; "
            f"rediss:// is for TLS. {type(error).__name__} was raised over it."
        ) from None


def _refuse_no_number(url: str) -> None:
    """redis-py takes a database that is no number for the first one."""
    parts = urlsplit(url)
    database = unquote(parts.path).replace("/", "") if parts.scheme in ("redis", "rediss") else ""
    if database and not (database.isascii() and database.isdecimal()):
        raise ConfigurationError("The database in a Redis URL is a number, such as in redis://host:6379/0.")


def _option(client: Any, name: str) -> Any:
    if isinstance(client, RedisCluster):
        return client.get_connection_kwargs().get(name)  # type: ignore[no-untyped-call] # redis-py's
    return client.connection_pool.connection_kwargs.get(name)


def _policy(client: Any) -> str:
    """A server's maxmemory-policy; empty where this user may not know. Managed ones often forbid CONFIG."""
    for ask, about, name in (
        (client.info, "memory", "maxmemory_policy"),
        (client.config_get, "maxmemory-policy", "maxmemory-policy"),
    ):
        try:
            policy = ask(about).get(name)
        except exceptions.ResponseError as error:
            if not isinstance(meaning(error)[0], ConfigurationError):
                raise
        else:
            if policy:
                return str(policy)
    return ""


def _evicts(policy: str) -> ConfigurationError:
    if not policy:
        return ConfigurationError(
            "Redis does not tell this user its maxmemory-policy (INFO and CONFIG GET are refused). Make sure "
            "that it is noeviction, and say RedisStore(…, allow_eviction=True)."
        )
    return ConfigurationError(
        f"Redis evicts keys when it is short of memory (maxmemory-policy {policy}), and an evicted record is "
        "an operation that runs again. Set maxmemory-policy noeviction, or accept it by "
        "RedisStore(…, allow_eviction=True)."
    )


def _checked(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, Exception):
            refuse(result)
    return results
