"""A slip in a store's URL is the program's error, told by the option's name and without any value."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from idemcore import ConfigurationError, Engine
from idemcore.cli.main import commands
from idemcore.stores.redis import RedisStore

UNKNOWN = (
    "mysql+pymysql://root:s3cr3t@127.0.0.1:1/test?conect_timeout=s3cr3t",
    "mariadb+pymysql://root:s3cr3t@127.0.0.1:1/test?conect_timeout=s3cr3t",
    "postgresql+psycopg://postgres:s3cr3t@127.0.0.1:1/test?conect_timeout=s3cr3t",
    "postgresql+psycopg2://postgres:s3cr3t@127.0.0.1:1/test?conect_timeout=s3cr3t",
    "redis://:s3cr3t@127.0.0.1:1/0?conect_timeout=s3cr3t",
    "rediss://:s3cr3t@127.0.0.1:1/0?conect_timeout=s3cr3t",
    "unix:///nowhere?conect_timeout=s3cr3t",
    "sqlite:////nowhere/at/all.db?conect_timeout=s3cr3t",
)


@pytest.mark.parametrize("url", UNKNOWN, ids=[url.partition(":")[0] for url in UNKNOWN])
def test_an_option_that_nobody_knows_is_named(url: str) -> None:
    """DEG-03: it was a TypeError of the driver's, or 'cannot be reached, try again'."""
    store = RedisStore if url.startswith("unix") else Engine
    with pytest.raises(ConfigurationError, match=r"an option .conect_timeout., which") as caught:
        store(url).check()
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("path", ["notadb", "0x1", "0/notadb", "%6eot", "\u0663"])
def test_a_redis_database_that_is_no_number_is_refused(path: str) -> None:
    """redis-py takes the first one instead, which other programs may have; what stands there is not shown."""
    with pytest.raises(ConfigurationError, match="is a number") as caught:
        Engine(f"redis://:s3cr3t@127.0.0.1:1/{path}")
    assert path not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1",
        "redis://127.0.0.1:1/",
        "redis://127.0.0.1:1/3?health_check_interval=5",
        "rediss://127.0.0.1:1/3?ssl_cert_reqs=none",
        "mysql+pymysql://root@127.0.0.1:1/test?charset=utf8mb4&ssl_ca=/ca.pem&connect_timeout=3",
        "sqlite:///never.db?timeout=3",
        "sqlite:///file:never.db?mode=rw&uri=true",
    ],
)
def test_options_that_a_driver_knows_pass(url: str) -> None:
    """Nothing is connected yet."""
    Engine(url).close()


@pytest.mark.parametrize("url", UNKNOWN[:1] + UNKNOWN[2:3] + UNKNOWN[4:5])
def test_the_command_line_tells_it_in_one_line(url: str) -> None:
    """OPS: exit status 2, for trying again does not help; no traceback, which would show the value."""
    result = CliRunner().invoke(commands, ["ls", "--json", "--store", url])
    told = json.loads(result.stderr)
    assert (result.exit_code, told["exit_status"]) == (2, 2)
    assert "conect_timeout" in told["error"]
    assert "s3cr3t" not in result.output + result.stderr
