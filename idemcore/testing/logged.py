"""What was raised behind a test client: frameworks log the exception of a 5xx and answer without it."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self


class LoggedError(logging.Handler):
    """A context manager that remembers the last exception that its own thread has logged meanwhile.

    Attributes:
        error: the exception; None where none was logged, or its logger does not propagate.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Looks at a record."""
        if record.exc_info and record.thread == self._thread:
            self.error = record.exc_info[1]

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self)
