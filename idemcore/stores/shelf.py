"""The memory store's books: which records there are, when each may go, how much room they take.

Nothing here locks, and nothing looks at policy. Records wait for their end in lines, one for each time
to live: within a line the order of entry is the order of expiry, so the next to go is always at a head
and no write costs more with a million records than with ten. An entry that leaves early leaves its line
too: no structure remembers a key that is gone.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from typing import Final

from idemcore.errors import StoreFull
from idemcore.identity import Identity
from idemcore.record import Claim, State, Swept
from idemcore.stores.entry import EVICTED, Entry, Line

_FACT_BYTES: Final = 1000
"""What one record costs beside its texts and its answer: objects and places in dicts (measured, rounded up)."""

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
        self._answers: Line = OrderedDict()  # oldest completion first
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
        scope, operation, key = identity = claim.identity
        room = _FACT_BYTES + len(scope) + len(operation) + len(key) + len(claim.fingerprint)
        if self.used_bytes + room > self._max_bytes and not self._make_room(room, now) and not overfill:
            raise StoreFull(
                "The memory store is full of records that still protect an operation; give it more "
                "max_bytes, shorten the retention, or use a database.",
                key_digest=identity.digest,
            )
        entry = Entry(claim, room, now)
        entry.expires_at = now + ttl
        entry.line = None
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
        self._unqueue(entry)
        self._give_up_answer(entry)
        self.used_bytes -= entry.room
        self._torn = False

    def keep(self, entry: Entry, seconds: float, now: float) -> None:
        """Keeps an entry for this long from now at the least; normally it is kept longer already."""
        if entry.line is None or entry.expires_at < now + seconds:
            if self._torn:
                self._mend()
            self._torn = True
            self._unqueue(entry)
            self._queue(entry, seconds, now)
            self._torn = False

    def finished(self, entry: Entry, retention: float, now: float) -> None:
        """Keeps an entry that has ended, and counts its answer's room.

        The oldest answers make way; one that could never fit goes itself.
        """
        if entry.line is None or entry.expires_at < now + retention:
            self.keep(entry, retention, now)
        answer = entry.answer
        if answer is None:
            return
        room = len(answer[1]) + len(answer[2])  # meta and body
        if room == 0:
            return  # giving it up would gain nothing
        if self._torn:
            self._mend()  # which counts this answer too
            return
        self._torn = True
        self._answers[entry] = None
        self._answer_bytes += room
        self.used_bytes += room
        self._torn = False
        if self.used_bytes > self._max_bytes:
            if self.used_bytes - self._answer_bytes + room > self._max_bytes:
                self._bury(entry)
            else:
                self._evict(self._max_bytes)

    def _mend(self) -> None:
        """Makes all books anew from the entries, which one step adds and one step removes."""
        entries = self.entries.values()
        line: Line = OrderedDict()
        for entry in sorted(entries, key=lambda entry: entry.expires_at):
            entry.line = line
            line[entry] = None
            if entry.state is not State.COMPLETED:
                entry.answer = None
        self._lines = {_MENDED: line} if line else {}
        self._turns = deque(self._lines)
        self._next_due = -math.inf
        answered = [entry for entry in entries if entry.answer is not None]
        answered.sort(key=lambda entry: entry.completed_at or 0.0)
        self._answers = OrderedDict.fromkeys(answered)
        self._answer_bytes = sum(
            len(entry.answer.meta) + len(entry.answer.body) for entry in answered if entry.answer is not None
        )
        self.used_bytes = sum(entry.room for entry in entries) + self._answer_bytes
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
        while self.used_bytes > down_to and self._answers:
            self._bury(next(iter(self._answers)))

    def _tidy(self, now: float) -> None:
        """Removes a bounded number of dead records; two lines a call, so that many lines starve none."""
        for _ in range(min(2, len(self._turns))):
            self._sweep_next_line(now, _STEPS)
        # With few lines it is known when to look again; with very many, one look is as dear as looking.
        self._next_due = now
        if len(self._lines) <= _STEPS:
            heads = [next(iter(line)) for line in self._lines.values() if line]
            self._next_due = min((head.expires_at for head in heads), default=math.inf)

    def _sweep_next_line(self, now: float, limit: int) -> Swept:
        ttl = self._turns[0]
        line = self._lines[ttl]
        finished = 0
        lost: list[Identity] = []
        while line and finished + len(lost) < limit:
            entry = next(iter(line))
            if entry.expires_at > now:
                break
            if not entry.forgettable(now):
                # On hold: only a verdict changes that, and whoever gives it puts the entry in a line again.
                self._torn = True
                self._unqueue(entry)
                self._torn = False
                continue
            if entry.state is State.CLAIMED or entry.state is State.COMMITTED:
                lost.append(entry.identity)
            else:
                finished += 1
            self.remove(entry)
        if line:
            self._turns.rotate(-1)
        else:
            self._torn = True
            del self._lines[ttl]
            self._turns.popleft()
            self._torn = False
        return Swept(finished, len(lost), tuple(lost))

    def _queue(self, entry: Entry, ttl: float, now: float) -> None:
        line = self._lines.get(ttl)
        if line is None:
            line = self._lines[ttl] = OrderedDict()
            self._turns.append(ttl)
        expires_at = entry.expires_at = now + ttl
        if expires_at < self._next_due:
            self._next_due = expires_at
        entry.line = line
        line[entry] = None

    def _unqueue(self, entry: Entry) -> None:
        if entry.line is not None:
            del entry.line[entry]
            entry.line = None

    def _bury(self, entry: Entry) -> None:
        self._torn = True
        entry.reason = EVICTED
        entry.state = State.TOMBSTONE
        self._give_up_answer(entry)
        self._torn = False
        self.evicted.append(entry.identity)

    def _give_up_answer(self, entry: Entry) -> None:
        answer = entry.answer
        if answer is not None and entry in self._answers:
            del self._answers[entry]
            room = len(answer.meta) + len(answer.body)
            self._answer_bytes -= room
            self.used_bytes -= room
        entry.answer = None
