"""The rules of CONTRIBUTING.md that no linter holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = [path for folder in ("idemcore", "adapters") for path in sorted((ROOT / folder).rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

# What silences a linter or a type checker, its codes, and then what should be some words.
IGNORE = re.compile(
    r"#\s*(?:noqa:|type: ignore|pyright: ignore)\s*(?:\[[^\]]*\]|[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?(.*)"
)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TESTS, ids=relative)
def test_every_test_says_in_a_sentence_what_holds(path: Path) -> None:
    """A failing test explains itself to whoever did not write it."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    silent = [node.name for node in functions if node.name.startswith("test_") and not ast.get_docstring(node)]
    assert silent == []


@pytest.mark.parametrize("path", SHIPPED, ids=relative)
def test_every_ignore_carries_its_reason(path: Path) -> None:
    """Whoever meets an ignored finding can judge whether the reason still holds."""
    lines = path.read_text().splitlines()
    bare = [line for line in lines if (found := IGNORE.search(line)) and not re.search(r"[a-z]{2}", found[1])]
    assert bare == []


@pytest.mark.parametrize("path", SHIPPED, ids=relative)
def test_every_module_opens_with_its_rule(path: Path) -> None:
    """The first line of a file tells what belongs in it."""
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SHIPPED, ids=relative)
def test_safety_does_not_hang_on_assert(path: Path) -> None:
    """`python -O` removes asserts; the suites that are shipped for other people's tests may use them."""
    if path.is_relative_to(ROOT / "idemcore" / "testing"):
        return
    tree = ast.parse(path.read_text())
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)] == []
