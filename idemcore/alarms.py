"""One alarm for each record that waits for a person: its retries, which come by themselves, are no news.

Nothing is written down when a retry is refused, so what has been said is remembered here, in each process.
"""

from __future__ import annotations

from typing import Final

from idemcore.identity import Identity
from idemcore.record import Record, UnreadableRecord

_REMEMBERED: Final = 1000


class Alarms:
    """Tells the first refusal of a record from the further ones; safe to share between threads.

    A thousand records are remembered; then it begins anew, and may say again what it said before.
    """

    def __init__(self) -> None:
        self._said: set[tuple[str, bytes]] = set()

    def is_news(self, identity: Identity, record: Record | UnreadableRecord) -> bool:
        """Whether nothing was said of this record before; another run under the same key is news."""
        key = identity.digest, record.token if isinstance(record, Record) else b""
        said = self._said
        if key in said:
            return False
        if len(said) >= _REMEMBERED:
            said.clear()
        said.add(key)
        return True
