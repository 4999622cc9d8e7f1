"""A command line for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Over a file of its own."""
    shell = Shell(tmp_path)
    yield shell
    shell.idem.close()
    shell.store.close()
