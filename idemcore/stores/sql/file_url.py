"""What a SQLite URL may say of its file, and when that is another file than its writer thinks."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from idemcore.stores.url_options import unknown_option

_OPTIONS: Final = (
    "cached_statements",
    "check_same_thread",
    "detect_types",
    "isolation_level",
    "timeout",
    "uri",
)
"""What SQLAlchemy hands to Python's driver; any other it leaves out, with a warning."""

_log: Final = logging.getLogger("idemcore")


def check_options(url: URL) -> None:
    """Refuses options that nobody would read.

    Raises:
        ConfigurationError: there is one.
    """
    if "uri" in url.query:  # then they are SQLite's own to read
        return
    for name in url.query:
        if name not in _OPTIONS:
            raise unknown_option("sqlite", name)


def tell_of_new_file(url: URL, path: str) -> None:
    """A WARNING of the log where the path is relative: a job that is started in another directory than before
    knows nothing of what it did.

    Args:
        url: as it was given.
        path: of the file that was made, as the driver got it.
    """
    named = url.database or ""
    if named.startswith("file:") or Path(named).is_absolute():
        return
    _log.warning(
        "A new file of records: %s. Its URL has a relative path, so a program that is started in another "
        "directory has another file, and runs again what is done here. An absolute path has four slashes: "
        "sqlite:////…",
        path,
    )
