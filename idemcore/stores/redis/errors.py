"""What an error of redis-py's means to a caller: no address, no name of a record, no value is in the words."""

from __future__ import annotations

from traceback import walk_tb
from typing import Final, NoReturn, TypeGuard

from redis import exceptions

from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable

RAISED: Final = (exceptions.RedisError, OSError)
"""What redis-py raises."""

_READS: Final = ("redis.connection", "redis._parsers", "redis.utils", "socket", "ssl")
"""Modules that read and write a connection."""

_UNAVAILABLE: Final = {
    "READONLY": "This Redis server is a replica and takes no writes, or a failover is under way.",
    "LOADING": "Redis is still loading its data.",
    "CLUSTERDOWN": "The Redis cluster is down.",
    "MASTERDOWN": "The Redis replica has lost its master.",
    "TRYAGAIN": "The Redis cluster is moving this record's slot.",
    "NOREPLICAS": "Redis has too few replicas to accept a write.",
    "MISCONF": "Redis cannot save to disk, so it accepts no writes.",
    "BUSY": "Redis is busy with somebody's script.",
}
_NO_LOGIN: Final = ("WRONGPASS", "NOAUTH", "NOPERM")
_CODE_OF: Final[dict[type[Exception], str]] = {  # a subclass before its base
    exceptions.OutOfMemoryError: "OOM",
    exceptions.AuthenticationError: "NOAUTH",
    exceptions.AuthenticationWrongNumberOfArgsError: "NOAUTH",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.BusyLoadingError: "LOADING",
    exceptions.MasterDownError: "MASTERDOWN",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.TryAgainError: "TRYAGAIN",
}


def is_cut_off(error: BaseException) -> TypeGuard[Exception]:
    """Whether another thread closed the connection under a command: redis-py finds None, or a closed file."""
    if type(error) not in (AttributeError, ValueError):
        return False
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    return modules[-1].startswith(_READS)


def refuse(error: Exception) -> NoReturn:
    """Raises what it means."""
    told, cause = meaning(error)
    raise told from cause


def meaning(error: Exception) -> tuple[IdempotencyError, Exception | None]:
    """And what may be chained: of what a server says, which may quote arguments, only the code stays."""
    text = str(error)
    code = text.partition(" ")[0]
    for kind, known in _CODE_OF.items():  # of these redis-py has cut the code off
        if isinstance(error, kind):
            code = known
            break
    if code == "OOM":
        return StoreFull("Redis has reached its maxmemory and evicts nothing; give it more."), error
    if code in _NO_LOGIN:
        return ConfigurationError(
            "Redis refused the user or the password, or does not let this user do what a store must "
            "(docs/redis.md has the list)."
        ), None
    if text.startswith("unknown command"):
        return ConfigurationError("This server does not know a command that a store needs: Redis 7 does."), None
    if code in _UNAVAILABLE:
        return StoreUnavailable(_UNAVAILABLE[code]), None
    if isinstance(error, exceptions.ClusterError):
        return StoreUnavailable("The Redis cluster cannot be reached, or not this record's part of it."), error
    if isinstance(error, exceptions.ResponseError):
        shown = code if code.isupper() and code.isalpha() else "an error without a code"
        return StoreUnavailable(f"Redis did not carry a command out ({shown})."), None
    if isinstance(error, exceptions.TimeoutError):
        return StoreUnavailable("Redis did not answer in time."), error
    return StoreUnavailable("Redis cannot be reached."), error
