"""Sphinx builds the Markdown that code hosts show too: `make docs`, where a warning is an error."""

from __future__ import annotations

import importlib.metadata
import re
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

DOCS = Path(__file__).parent


def name_what_is_not_built(_app: Sphinx, page: str, text: list[str]) -> None:
    """A link to a file of the repository or to a folder leads nowhere in the built pages: says its path."""
    here = (DOCS / page).parent

    def replace(link: re.Match[str]) -> str:
        target = (here / link["target"]).resolve()
        if target.is_relative_to(DOCS) and target.suffix in (".md", ".json"):
            return link[0]
        path = target.relative_to(DOCS.parent)
        return (
            f"`{path}`" if link["text"].strip("`") in (path.name, str(path)) else f"{link['text']} (`{path}`)"
        )

    text[0] = re.sub(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)\)", replace, text[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", name_what_is_not_built)
