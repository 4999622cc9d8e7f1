"""README as an index shows it, where no file of the repository is beside it: paths for links and pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_links import IMAGE, LINK, named_by_path

README = Path(__file__).resolve().parent.parent / "README.md"


class Describe(MetadataHookInterface):
    """Found by hatchling, by pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the long description."""
        text = named_by_path(README.read_text(), README, README.parent, lambda _: False, LINK, IMAGE)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
