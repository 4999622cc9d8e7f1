# ruff: noqa: S608 - the names in the statements are our own
"""MariaDB and Redis in the benchmark of stores: bare commands of their drivers, our stores, peers on Redis."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import MetaData, make_url

from benchmarks.backends import (
    ANSWER,
    FINGERPRINT,
    Opened,
    bare,
    claim,
    finished,
    fresh,
    open_sql,
    ours,
    table_names,
)
from benchmarks.store_peers import Side, idemkit_on_redis, powertools_on_redis
from idemcore.stores.redis import RedisStore
from idemcore.stores.redis.names import Names
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table

MARIADB = make_url(os.environ.get("IDEMCORE_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/test"))
REDIS = os.environ.get("IDEMCORE_TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
"""Where the servers are; tables and keys of the benchmark's own are made there, and removed."""

FAR = 4_000_000_000_000
"""Milliseconds since the epoch that no benchmark will see the end of."""


@contextmanager
def mariadb(folder: Path) -> Iterator[Opened]:
    """Through PyMySQL, by the server's own setting of how a commit waits for the disk."""
    import pymysql

    tables = table_names()
    connection = pymysql.connect(
        host=MARIADB.host,
        port=MARIADB.port or 3306,
        user=MARIADB.username,
        password=MARIADB.password or "",
        database=MARIADB.database,
        autocommit=True,
    )
    cursor = connection.cursor()
    cursor.execute(
        f"CREATE TABLE {tables[0]} (scope varbinary(128), operation varbinary(255), `key` varbinary(255),"
        " state varchar(16) NOT NULL, fingerprint text NOT NULL, meta mediumblob, body mediumblob,"
        " PRIMARY KEY (scope, operation, `key`))"
    )
    store = SQLAlchemyStore(MARIADB, table=idempotency_table(MetaData(), name=tables[1]))
    store.create_schema()

    def execute(statement: str, values: tuple[object, ...]) -> object:
        cursor.execute(statement, values)
        return cursor

    def fill(rows: int, until: int) -> None:
        series = f"(SELECT seq AS i FROM seq_1_to_{rows}) AS n"
        text = _with_quotes(finished(tables[1], series, "uuid()", "repeat('x', 200)", until))
        # The token has a column of just 16 bytes here.
        cursor.execute(text.replace("repeat('x', 200), 1, false", "repeat('x', 16), 1, false"))

    try:
        url = MARIADB.render_as_string(hide_password=False)
        again = partial(open_sql, url, tables[1])
        driver = bare("PyMySQL", execute, tables[0], "%s", _with_quotes)
        yield Opened([driver, ours(store)], store, fill, again=again)
    finally:
        store.close()
        for table in tables:
            cursor.execute(f"DROP TABLE {table}")
        connection.close()


def _with_quotes(text: str) -> str:
    """A column's name is a word of MySQL's, and it knows no ON CONFLICT."""
    return text.replace(" key,", " `key`,").replace("key =", "`key` =").partition(" ON CONFLICT")[0]


@contextmanager
def redis(folder: Path) -> Iterator[Opened]:
    """Through redis-py; an own prefix, whose keys are removed."""
    from redis import Redis

    prefix = f"bench:{uuid.uuid4().hex[:8]}:"
    store = RedisStore(REDIS, prefix=prefix)
    with Redis.from_url(REDIS) as client:

        def fill(rows: int, until: int) -> None:
            one = claim(fresh())
            store.reserve(one)
            store.complete(one, ANSWER)
            name, _ = Names(prefix).of(one.identity)
            value = client.get(name)
            for start in range(0, rows, 10_000):
                with client.pipeline(transaction=False) as pipe:
                    for _ in range(start, min(rows, start + 10_000)):
                        pipe.set(name[:-32] + fresh().encode(), value, pxat=min(until // 1_000, FAR))
                    pipe.execute()

        try:
            sides = [
                _redis_py(client, prefix),
                ours(store),
                idemkit_on_redis(REDIS, prefix),
                powertools_on_redis(REDIS, prefix),
            ]
            again = partial(RedisStore, REDIS, prefix=prefix)
            yield Opened(sides, store, fill, sweeps=False, again=again)
        finally:
            store.close()
            for key in client.scan_iter(match=f"*{prefix}*", count=1_000):
                client.delete(key)


def _redis_py(client: object, prefix: str) -> Side:
    """SET NX, then SET; GET."""
    do_set, get = client.set, client.get  # type: ignore[attr-defined] # a client of redis-py's
    claimed, kept = FINGERPRINT.encode() + os.urandom(16), f"{prefix}kept"
    answer = claimed + ANSWER.meta + ANSWER.body

    def one(key: str) -> None:
        os.urandom(16)
        assert do_set(key, claimed, nx=True, px=30_000)
        assert do_set(key, answer, px=86_400_000)

    one(kept)

    def new(calls: int) -> None:
        for _ in range(calls):
            one(prefix + fresh())

    def replay(calls: int) -> None:
        for _ in range(calls):
            os.urandom(16)
            assert get(kept) == answer

    return Side("redis-py", new, replay)
