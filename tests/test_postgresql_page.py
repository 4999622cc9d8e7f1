"""The page on PostgreSQL is followed as a reader would: files are written, commands typed, in one folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from click.testing import CliRunner
from sqlalchemy import create_engine, make_url

from idemcore.cli.main import commands
from tests.stores.services import POSTGRES_URL, REQUIRED

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "postgresql.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)

NEVER_RUN = ("pip install", "export IDEMCORE_STORE")
"""Commands that a test cannot follow: it has what they would bring."""

FILES_THAT_RUN = ("pooled.py", "sweeping.py", "settled.py")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """An empty database: PostgreSQL's where there is one, as CI demands, else a SQLite file."""
    if not POSTGRES_URL:
        assert not REQUIRED
        yield f"sqlite:///{tmp_path / 'shop.db'}"
        return
    name = f"idem_page_{os.getpid()}"
    server = create_engine(make_url(POSTGRES_URL), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        try:
            yield make_url(POSTGRES_URL).set(database=name).render_as_string(hide_password=False)
        finally:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    server.dispose()


class Reader:
    """Types what the page says, in a folder of their own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "IDEMCORE_STORE": url, "PATH": path, "PYTHONPATH": "."}

    def type(self, typed: str) -> str:
        if typed.startswith("idemcore ") and ">" not in typed:  # in this process, which is faster
            result = CliRunner().invoke(commands, shlex.split(typed)[1:], env=self.environment)
            assert result.exit_code == 0, f"{typed}: {result.output}"
            return result.stdout
        ran = subprocess.run(
            ["bash", "-c", typed],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ran.returncode == 0, f"{typed}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def write(self, block: str) -> None:
        name = re.match(r"# (\S+)\n", block)
        assert name is not None, "the first line of a file names it"
        file = self.folder / name[1]
        file.parent.mkdir(exist_ok=True)
        file.write_text(block)
        if name[1] in FILES_THAT_RUN:
            self.type(f"python {name[1]}")

    def console(self, block: str) -> None:
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            typed, _, expected = entry.partition("\n")
            if typed.startswith(NEVER_RUN):
                continue
            printed = self.type(typed)
            said = ".*".join(map(re.escape, expected.strip().split("…")))  # which the page leaves out
            assert re.search(rf"{said}\Z", printed.strip()), f"{typed}: {printed}"
            if typed.startswith("idemcore ls"):
                assert "unknown" in printed


@pytest.mark.slow
def test_the_page_is_followed_from_top_to_bottom(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and each command; what a command prints is what the page says."""
    reader = Reader(tmp_path, url)
    monkeypatch.chdir(tmp_path)
    command.init(Config("alembic.ini"), "migrations")
    for kind, block in BLOCKS:
        if kind == "python":
            reader.write(block)
        elif kind == "console":
            reader.console(block)
        else:
            assert kind == "text"  # of the crontab
            reader.type(cron_command(block))
    compile((tmp_path / "gunicorn.conf.py").read_text(), "gunicorn.conf.py", "exec")


def cron_command(block: str) -> str:
    """What is behind the five fields of the one line."""
    (line,) = block.splitlines()
    *fields, typed = line.split(maxsplit=5)
    assert all(re.fullmatch(r"[\d*,/-]+", field) for field in fields)
    return typed


def test_what_pip_is_told_to_install_exists() -> None:
    """The extras of its first block."""
    extras: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.search(r"idemcore\[([\w,]+)\]", BLOCKS[0][1])
    assert named is not None
    assert set(named[1].split(",")) <= set(extras["optional-dependencies"])


def test_the_file_that_leaves_the_table_out_names_it() -> None:
    """As it is called by default; `tests/stores/test_alembic.py` shows what happens without."""
    (block,) = (block for kind, block in BLOCKS if "include_object" in block)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 - our own page
    include = names["include_object"]
    assert not include(None, "idempotency_records", "table", True, None)
    assert include(None, "payments", "table", True, None)
    assert include(None, "idempotency_records", "index", True, None)
