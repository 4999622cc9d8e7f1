"""Sphinx builds the Markdown that code hosts show too: `make docs`, where a warning is an error."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

project = "idemcore"
author = "idemcore contributors"
project_copyright = "idemcore contributors, MIT license"
release = importlib.metadata.version("idemcore")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"idemcore {release}"

myst_fence_as_directive = ["mermaid"]  # a plain fence, since code hosts draw that too
myst_heading_anchors = 3

napoleon_use_ivar = True  # an attribute that is a property too is told once
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature shows them
add_module_names = False
python_use_unqualified_type_names = True

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "scripts"))

from page_links import named_by_path  # noqa: E402 - found by the line above


def is_built(target: Path) -> bool:
    """Whether the built pages have it: a folder, or a file of another kind, is not among them."""
    return target.is_relative_to(DOCS) and target.suffix in (".md", ".json")


def fit_to_the_build(_app: Sphinx, page: str, text: list[str]) -> None:
    """A link that would lead nowhere says a path; the lists of the index are the navigation too."""
    text[0] = named_by_path(text[0], DOCS / f"{page}.md", DOCS.parent, is_built)
    if page == "index":
        text[0] += "".join(toctrees(text[0]))


def toctrees(index: str) -> Iterator[str]:
    """For each section of the index what puts its pages into the side bar."""
    for title, section in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", index, re.MULTILINE):
        pages = re.findall(r"^- .*?\]\(([\w/-]+)\.md\)", section, re.MULTILINE)
        glob = ["http/problems/*"] if "`docs/http/problems`" in section else []
        yield "\n".join(
            ["\n```{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *pages, *glob, "```\n"]
        )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", fit_to_the_build)
