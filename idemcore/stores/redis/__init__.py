"""Records in Redis or Valkey, through redis-py: what a failover can lose stands in docs/redis.md."""

try:
    from idemcore.stores.redis.store import RedisStore
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "redis":
        raise
    raise ImportError("A store in Redis needs redis-py: pip install 'idemcore[redis]'") from error

__all__ = ["RedisStore"]
