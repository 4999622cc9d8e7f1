"""The pages of docs/ are run as they are written: each page's Python, from top to bottom, is one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TEXTS = [
    *PAGES,
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("[!.]*/*/README.md")),
    *sorted(ROOT.glob("[!.]*/README.md")),
]

RUN_ELSEWHERE = {
    "cors.md": "tests/test_http_docs.py",
    "options.md": "tests/test_http_docs.py",
    "order.md": "tests/test_http_docs.py",
    "mariadb.md": "tests/stores/test_mariadb_docs.py",
    "redis.md": "tests/stores/test_redis_docs.py",
    "postgresql.md": "tests/test_postgresql_page.py",
}
"""Pages whose blocks are programs of their own, by the test that runs them one by one."""


def program(page: Path) -> str:
    """The page's blocks, at the lines at which they stand, so that a traceback points into the page."""
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        start = text.count("\n", 0, block.start(1))
        for offset, line in enumerate(block[1].splitlines()):
            lines[start + offset] = line
    return "\n".join(lines)


RUN_HERE = [page for page in PAGES if page.name not in RUN_ELSEWHERE and program(page).strip()]


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.name)
def test_the_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """In a process and a folder of its own, warnings as errors; what it asserts is what it says."""
    (tmp_path / page.name).write_text(program(page))
    ran = subprocess.run(
        [sys.executable, "-W", "error", page.name], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Within the repository."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_reached_from_the_index(page: Path) -> None:
    """A page that no list names is found by nobody; a folder stands for all of its pages."""
    listed = {DOCS / target for target in re.findall(r"\]\(([^)#:]+)\)", (DOCS / "index.md").read_text())}
    assert page.name == "index.md" or listed & {page, page.parent}
