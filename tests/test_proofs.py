"""What README and docs/ claim has its proof beside it: a link to the test, benchmark or scene that shows it.

A proof is a link into tests/, benchmarks/ or examples/. Its text may name what to look for behind two colons:
`test_races.py::test_name`, `scenes.py::lost_answer`. Each `##` section has one at the least, and so has a head
that is more than an introduction; the sections that only tell are listed.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PROOFS = [ROOT / folder for folder in ("tests", "benchmarks", "examples")]
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

HELD_AS_A_WHOLE = {"docs/index.md", "docs/reference.md"}
"""A list of pages, and docstrings. Pages of refusals are for who was refused; test_http_docs.py holds them."""

ONLY_TOLD = {
    "README.md": {"What it does not do"},
    "docs/concepts.md": {"Where it all stands"},
    "docs/deployment.md": {"Afterwards"},
    "docs/postgresql.md": {"Install", "Say where"},
    "docs/upgrading.md": {"How the format will change"},
}
"""By page the sections that claim nothing that a test could show."""

INTRODUCES = 6
"""A head of so many lines leads to what is below it; a longer one has claims of its own."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


CLAIMING = [page for page in PAGES if name_of(page) not in HELD_AS_A_WHOLE and page.parent.name != "problems"]


def parts(page: Path) -> dict[str, str]:
    """The page's text by the titles of its sections; code cannot open one."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    head, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    found = {title: body for title, _, body in (part.partition("\n") for part in rest)}
    long = len([line for line in head.splitlines() if line.strip()]) > INTRODUCES
    return {"the head": head, **found} if long or not rest else found


def proofs(text: str, page: Path) -> list[tuple[Path, str]]:
    """What the text's links lead to among the proofs, each with the name that its words give."""
    found = []
    for words, target in re.findall(r"\[([^\]]+)\]\(([^)#:\s]+)\)", text):
        path = (page.parent / target).resolve()
        if any(path.is_relative_to(folder) for folder in PROOFS):
            found.append((path, words.strip("`").partition("::")[2]))
    return found


def names_in(module: Path) -> set[str]:
    """The functions and classes that a file defines, methods among them."""
    tree = ast.parse(module.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_proof_is_said_to_be_is_there(page: Path) -> None:
    """A test that was renamed or removed takes its claim along, or gives it another proof."""
    named = [(path, name) for path, name in proofs(page.read_text(), page) if name]
    assert [f"{path.name}::{name}" for path, name in named if name not in names_in(path)] == []


@pytest.mark.parametrize("page", CLAIMING, ids=name_of)
def test_each_part_of_a_page_has_its_proof(page: Path) -> None:
    """The list of parts that only tell is exact, so that none stays on it that was given one."""
    bare = {title for title, text in parts(page).items() if not proofs(text, page)}
    assert bare == ONLY_TOLD.get(name_of(page), set())


def test_no_page_that_is_gone_is_excused() -> None:
    """Nor is one that was renamed."""
    assert set(ONLY_TOLD) <= {name_of(page) for page in CLAIMING}
