"""What each error of redis-py's means: whose turn it is, in which words, and what of it may be shown."""

from __future__ import annotations

import pytest
from redis import exceptions

from idemcore.errors import ConfigurationError, IdempotencyError, StoreFull, StoreUnavailable
from idemcore.stores.redis.errors import meaning

SAID = [
    (exceptions.OutOfMemoryError("command not allowed"), StoreFull, "reached its maxmemory", True),
    (
        exceptions.AuthenticationError("for user-1"),
        ConfigurationError,
        "refused the user or the password",
        False,
    ),
    (exceptions.NoPermissionError("key k-1"), ConfigurationError, "docs/redis.md", False),
    (exceptions.ResponseError("WRONGPASS user-1"), ConfigurationError, "refused the user", False),
    (exceptions.ResponseError("unknown command 'EVALSHA' k-1"), ConfigurationError, "Redis 7 does", False),
    (exceptions.ReadOnlyError("k-1"), StoreUnavailable, "a replica", False),
    (exceptions.BusyLoadingError(""), StoreUnavailable, "still loading", False),
    (exceptions.MasterDownError(""), StoreUnavailable, "lost its master", False),
    (exceptions.ClusterDownError("CLUSTERDOWN k-1"), StoreUnavailable, "cluster is down", False),
    (exceptions.TryAgainError("k-1"), StoreUnavailable, "moving this record's slot", False),
    (exceptions.ResponseError("NOREPLICAS k-1"), StoreUnavailable, "too few replicas", False),
    (exceptions.ResponseError("MISCONF k-1"), StoreUnavailable, "cannot save to disk", False),
    (exceptions.ResponseError("BUSY k-1"), StoreUnavailable, "somebody's script", False),
    (exceptions.ClusterError("k-1"), StoreUnavailable, "not this record's part of it", True),
    (exceptions.ResponseError("WRONGTYPE k-1"), StoreUnavailable, r"\(WRONGTYPE\)", False),
    (exceptions.ResponseError("value 'k-1' is none"), StoreUnavailable, "an error without a code", False),
    (exceptions.TimeoutError("127.0.0.1"), StoreUnavailable, "did not answer in time", True),
    (exceptions.ConnectionError("127.0.0.1"), StoreUnavailable, "cannot be reached", True),
    (OSError("127.0.0.1"), StoreUnavailable, "cannot be reached", True),
]


@pytest.mark.parametrize(("error", "kind", "words", "chained"), SAID)
def test_each_error_has_its_kind_and_words(
    error: Exception, kind: type[IdempotencyError], words: str, chained: bool
) -> None:
    """DEG-01: none shows an address, a user or a key; the server's own text, which may, is not chained."""
    told, cause = meaning(error)
    assert type(told) is kind
    with pytest.raises(kind, match=words):
        raise told
    assert not any(secret in str(told) for secret in ("127.0.0.1", "user-1", "k-1"))
    assert cause is (error if chained else None)
