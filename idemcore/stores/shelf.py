"""The memory store's books: which records there are, when each may go, how much room they take.

Nothing here locks, and nothing looks at policy. Records wait for their end in lines, one for each time
to live: within a line the order of entry is the order of expiry, so the next to go is always at a head
and no write costs more with a million records than with ten. An entry that leaves early leaves its line
too: no structure remembers a key that is gone.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from idemcore.errors import StoreFull
from idemcore.identity import Identity
from idemcore.record import Answer, Claim, State, Swept, Tombstone
from idemcore.stores.entry import EVICTED, Entry
from idemcore.stores.orders import NOWHERE, Answers, Line

_FACT_BYTES: Final = 560
"""What a record costs beside its texts and its answer: objects and a place in a dict (measured, rounded up)."""

_STEPS: Final = 32
"""Dead records that one write removes at the most. More than the one it adds, so that they shrink."""

_MENDED: Final = -1.0
"""The line of all entries that were there when the books were mended, in the place of their times to live."""


class Shelf:
    """All entries of one store.

    Attributes:
        entries: by identity.
        used_bytes: room that entries and answers take.
        evicted: whose answers were given up, until somebody takes the list.
    """

    def __init__(self, max_bytes: int) -> None:
        self.entries: dict[Identity, Entry] = {}
        self.used_bytes = 0
        self.evicted: list[Identity] = []
        self._max_bytes = max_bytes
        self._answers = Answers()
        self._answer_bytes = 0
        self._lines: dict[float, Line] = {}
        self._turns: deque[float] = deque()  # whose line is looked at next
        self._next_due = math.inf  # nothing is due before this
        # Set while the books change. Found set, an interrupt (a signal's exception) broke the last change
        # off in the middle, and they are made anew.
        self._torn = False

    def admit(self, claim: Claim, ttl: float, now: float, *, overfill: bool = False) -> Entry:
        """A new entry for this claim, in the place of none. Dead records and then the oldest answers make way.

        Args:
            claim: what to write.
            ttl: seconds that it is kept, if nothing else happens to it.
            now: by the store's clock.
            overfill: whether a record of work that is done is let in even so.

        Raises:
            StoreFull: facts alone fill the room; no answer was given up in vain.
        """
        if self._torn:
            self._mend()
        if now >= self._next_due:
            self._tidy(now)
        identity = claim.identity
        room = _room(identity, claim.fingerprint)
        if self.used_bytes + room > self._max_bytes and not self._make_room(room, now) and not overfill:
            raise StoreFull(
                "The memory store is full of records that still protect an operation; give it more "
                "max_bytes, shorten the retention, or use a database.",
                key_digest=identity.digest,
            )
        entry = Entry(claim, now)
        entry.expires_at = now + ttl
        self._torn = True
        self.entries[identity] = entry
        self.used_bytes += room
        self._queue(entry, ttl, now)
        self._torn = False
        return entry

    def remove(self, entry: Entry) -> None:
        """Forgets an entry everywhere."""
        if self._torn:
            self._mend()
        self._torn = True
        self.entries.pop(entry.identity, None)
        entry.leave_line()
        self._give_up_answer(entry)
        self.used_bytes -= _room(entry.identity, entry.fingerprint)
        self._torn = False

    def keep(self, entry: Entry, seconds: float, now: float) -> None:
        """Keeps an entry for this long from now at the least; normally it is kept longer already."""
        if entry.after is NOWHERE or entry.expires_at < now + seconds:
            if self._torn:
                self._mend()
            self._torn = True
            entry.leave_line()
            self._queue(entry, seconds, now)
            self._torn = False

    def finish(
        self, entry: Entry, outcome: Answer | Tombstone, retention: float, now: float, wall_now: float
    ) -> None:
        """Ends an entry, keeps it for this long from now at the least, and counts its answer's room.

        The oldest answers make way; one that could never fit goes itself.
        """
        if entry.after is NOWHERE or entry.expires_at < now + retention:
            self.keep(entry, retention, now)
        if self._torn:
            self._mend()
        self._torn = True
        entry.finish(outcome, wall_now)
        room = len(entry.meta) + len(entry.body)
        if room:  # giving up an answer of nothing would gain nothing
            self._answers.append(entry)
            self._answer_bytes += room
            self.used_bytes += room
        self._torn = False
        if room and self.used_bytes > self._max_bytes:
            if self.used_bytes - self._answer_bytes + room > self._max_bytes:
                self._bury(entry)
            else:
                self._evict(self._max_bytes)

    def _mend(self) -> None:
        """Makes all books anew from the entries, which one step adds and one step removes."""
        entries = self.entries.values()
        line, answers = Line(), Answers()
        for entry in sorted(entries, key=lambda entry: entry.expires_at):
            line.append(entry)
            entry.older = entry.newer = NOWHERE
            if entry.state is not State.COMPLETED:
                entry.drop_answer()
        self._lines = {_MENDED: line} if entries else {}
        self._turns = deque(self._lines)
        self._next_due = -math.inf
        self._answers, self._answer_bytes = answers, 0
        for entry in sorted(entries, key=lambda entry: entry.completed_at or 0.0):
            if entry.meta or entry.body:
                answers.append(entry)
                self._answer_bytes += len(entry.meta) + len(entry.body)
        facts = sum(_room(entry.identity, entry.fingerprint) for entry in entries)
        self.used_bytes = facts + self._answer_bytes
        self._torn = False

    def sweep(self, now: float, limit: int) -> Swept:
        """Removes at most `limit` forgettable records, from all lines."""
        if self._torn:
            self._mend()
        finished = 0
        lost: tuple[Identity, ...] = ()
        for _ in range(len(self._turns)):
            swept = self._sweep_next_line(now, limit - finished - len(lost))
            finished += swept.finished
            lost += swept.lost
        return Swept(finished, len(lost), lost)

    def _make_room(self, room: int, now: float) -> bool:
        """Whether a fact fits, once dead records and, where that is of use, answers are gone."""
        while self.used_bytes - self._answer_bytes + room > self._max_bytes:
            if not self.sweep(now, _STEPS).removed:
                return False
        self._evict(self._max_bytes - room)
        return True

    def _evict(self, down_to: int) -> None:
        """Turns the oldest answers into tombstones until the rest takes no more than this."""
        while self.used_bytes > down_to and isinstance(oldest := self._answers.newer, Entry):
            self._bury(oldest)

    def _tidy(self, now: float) -> None:
        """Removes a bounded number of dead records; two lines a call, so that many lines starve none."""
        for _ in range(min(2, len(self._turns))):
            self._sweep_next_line(now, _STEPS)
        # With few lines it is known when to look again; with very many, one look is as dear as looking.
        self._next_due = now
        if len(self._lines) <= _STEPS:
            firsts = [line.after for line in self._lines.values()]
            due = (first.expires_at for first in firsts if isinstance(first, Entry))
            self._next_due = min(due, default=math.inf)

    def _sweep_next_line(self, now: float, limit: int) -> Swept:
        ttl = self._turns[0]
        line = self._lines[ttl]
        finished = 0
        lost: list[Identity] = []
        while finished + len(lost) < limit:
            entry = line.after
            if not isinstance(entry, Entry) or entry.expires_at > now:
                break
            if not entry.forgettable(now):
                # On hold: only a verdict changes that, and whoever gives it puts the entry in a line again.
                self._torn = True
                entry.leave_line()
                self._torn = False
                continue
            if entry.state is State.CLAIMED or entry.state is State.COMMITTED:
                lost.append(entry.identity)
            else:
                finished += 1
            self.remove(entry)
        if line.after is not line:
            self._turns.rotate(-1)
        else:
            self._torn = True
            del self._lines[ttl]
            line.leave_line()  # from itself, so that it goes at once and waits for no collection
            self._turns.popleft()
            self._torn = False
        return Swept(finished, len(lost), tuple(lost))

    def _queue(self, entry: Entry, ttl: float, now: float) -> None:
        line = self._lines.get(ttl)
        if line is None:
            line = self._lines[ttl] = Line()
            self._turns.append(ttl)
        expires_at = entry.expires_at = now + ttl
        if expires_at < self._next_due:
            self._next_due = expires_at
        line.append(entry)

    def _bury(self, entry: Entry) -> None:
        self._torn = True
        entry.reason = EVICTED
        entry.state = State.TOMBSTONE
        self.evicted.append(entry.identity)
        self._give_up_answer(entry)
        self._torn = False

    def _give_up_answer(self, entry: Entry) -> None:
        if entry.newer is not NOWHERE:
            entry.leave_answers()
            room = len(entry.meta) + len(entry.body)
            self._answer_bytes -= room
            self.used_bytes -= room
        entry.drop_answer()


def _room(identity: Identity, fingerprint: str) -> int:
    """What a fact takes. Told from what never changes, so that no entry needs to keep it."""
    scope, operation, key = identity
    return _FACT_BYTES + len(scope) + len(operation) + len(key) + len(fingerprint)
