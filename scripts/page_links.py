"""Where pages are read outside of the repository, a link to what is not there says its path instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)(?:#[^)]*)?\)")
IMAGE = re.compile(r"!\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)\)")


def named_by_path(
    text: str, page: Path, root: Path, is_there: Callable[[Path], bool], *links: re.Pattern[str]
) -> str:
    """Gives back the page's text with those links that lead nowhere turned into paths.

    Args:
        text: the page, in Markdown.
        page: where it stands in the repository.
        root: the top of the repository.
        is_there: whether a file of the repository, by its absolute path, is where the page will be read.
        links: the kinds of links to look at, `LINK` if none is named.
    """

    def replace(link: re.Match[str]) -> str:
        target = (page.parent / link["target"]).resolve()
        if is_there(target):
            return link[0]
        path = target.relative_to(root).as_posix()
        text, _, name = link["text"].strip("`").partition("::")
        shown = f"`{path}::{name}`" if name else f"`{path}`"
        return shown if text in (target.name, path) else f"{link['text']} ({shown})"

    for kind in links or (LINK,):
        text = kind.sub(replace, text)
    return text
