"""docs/bad-days.md names every bad day that is tested here, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "bad-days.md"


def test_the_page_and_the_tests_name_the_same_days() -> None:
    """One row for each test: neither is written without the other."""
    tested = {
        f"{path.name}::{node.name}"
        for path in HERE.glob("test_*.py")
        if path != Path(__file__).resolve()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    rows = [line for line in PAGE.read_text().splitlines() if "::" in line]
    assert sorted(re.search(r"`(\w+\.py::\w+)` \|$", row)[1] for row in rows) == sorted(tested)  # type: ignore[index] # each row ends so
