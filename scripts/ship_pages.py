"""What of docs/ goes into the wheel, for share/doc/idemcore: pages whose links lead somewhere once installed.

README's links lead to the pages in the repository only. The reference is made from docstrings by Sphinx, so it
is left out: `python -m pydoc` shows them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_links import IMAGE, LINK, named_by_path

DOCS = Path(__file__).resolve().parent.parent / "docs"
LEFT_OUT = {DOCS / "reference.md"}
FOLDER = "share/doc/idemcore"


class ShipPages(BuildHookInterface[Any]):
    """Found by hatchling, by pyproject.toml."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the pages to the wheel's data; an editable install reads those of its own tree."""
        if version == "editable":
            return
        shipped = {path for path in DOCS.rglob("*") if path.suffix in (".md", ".json")} - LEFT_OUT
        there = shipped | {folder for path in shipped for folder in path.parents if folder.is_relative_to(DOCS)}
        self.made = TemporaryDirectory()
        for path in sorted(shipped):
            copy = Path(self.made.name) / path.relative_to(DOCS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text()
            if path.suffix == ".md":
                text = named_by_path(text, path, DOCS.parent, there.__contains__, LINK, IMAGE)
            copy.write_text(text)
            build_data["shared_data"][str(copy)] = f"{FOLDER}/{path.relative_to(DOCS).as_posix()}"

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """The wheel is written."""
        if version != "editable":
            self.made.cleanup()
