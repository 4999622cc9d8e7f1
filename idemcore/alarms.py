"""One alarm for each record that waits for a person: its retries, which come by themselves, are no news.

Nothing is written down when a retry is refused, so what has been said is remembered here, in each process.
"""

from __future__ import annotations

from typing import Final

from idemcore import events
from idemcore.announcer import Announcer
from idemcore.errors import RecordUnreadable
from idemcore.identity import Identity
from idemcore.record import Outcome, Record, UnreadableRecord

_REMEMBERED: Final = 1000


class Alarms:
    """Tells the first refusal of a record from the further ones; safe to share between threads.

    A thousand records are remembered; then it begins anew, and may say again what it said before.
    """

    def __init__(self, emit: Announcer) -> None:
        self._emit = emit
        self._said: set[tuple[str, bytes]] = set()

    def in_doubt(self, identity: Identity, record: Record, reason: str) -> None:
        """A run was killed, which raised no alarm itself; another run under the same key is news."""
        if self._is_news(identity, record.token):
            self._emit(events.OutcomeInDoubt, identity, record.attempt, reason)

    def damaged(self, identity: Identity, reason: str, record: Record | UnreadableRecord | None = None) -> None:
        """What is kept cannot be read."""
        if self._is_news(identity, record.token if isinstance(record, Record) else b""):
            self._emit(events.RecordDamaged, identity, reason)

    def not_given_back(self, identity: Identity, outcome: Outcome, error: RecordUnreadable) -> None:
        """A kept outcome cannot be given back, and `error` is what the caller gets instead."""
        # A kept exception of the function's own has no cause; one that the stack had no room for is whole.
        own = outcome.kind == "raised" and error.__cause__ is None
        if not (own or isinstance(error.__cause__, RecursionError)):
            self.damaged(identity, "its outcome cannot be given back")

    def _is_news(self, identity: Identity, token: bytes) -> bool:
        key = identity.digest, token
        said = self._said
        if key in said:
            return False
        if len(said) >= _REMEMBERED:
            said.clear()
        said.add(key)
        return True
