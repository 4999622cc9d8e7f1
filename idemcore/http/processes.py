"""Says, once an engine, that records in memory protect nothing between the processes of one server."""

from __future__ import annotations

import logging
import weakref
from typing import Final

from idemcore.engine import Engine
from idemcore.stores.memory import MemoryStore

_log: Final = logging.getLogger("idemcore")
_told: Final[weakref.WeakSet[Engine]] = weakref.WeakSet()


def warn_of_split_memory(engine: Engine) -> None:
    """Logs a warning, for a server that says it has several processes (``wsgi.multiprocess``, PEP 3333)."""
    if engine not in _told and isinstance(engine.store, MemoryStore):
        _told.add(engine)
        _log.warning(
            "This server has several processes and keeps idempotency records in the memory of each: a retry "
            "that reaches another process runs again. Use a database, such as Engine('sqlite:///records.db')."
        )
