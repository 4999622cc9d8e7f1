"""The orders that entries stand in, linked in the entries themselves: one step in, one step out.

An `OrderedDict` would do the same for a hundred bytes more a member. Each order is a ring whose head stands
before the first member and after the last; a head with no member is its own neighbour. What stands in no
order has `NOWHERE` beside it, a ring without members, so that leaving one twice changes nothing.
"""

from __future__ import annotations

from typing import Final


class Links:
    """A place in two orders: `before` and `after` of a line, `older` and `newer` of the kept answers."""

    after: Links
    before: Links
    newer: Links
    older: Links

    __slots__ = ("after", "before", "newer", "older")

    def leave_line(self) -> None:
        """Takes this out of its line."""
        before, after = self.before, self.after
        before.after, after.before = after, before
        self.before = self.after = NOWHERE

    def leave_answers(self) -> None:
        """Takes this out of the kept answers."""
        older, newer = self.older, self.newer
        older.newer, newer.older = newer, older
        self.older = self.newer = NOWHERE


class Line(Links):
    """Members in the order in which they may go: the first is `after` this head."""

    __slots__ = ()

    def __init__(self) -> None:
        self.before = self.after = self

    def append(self, member: Links) -> None:
        """Puts a member of no line last."""
        last = self.before
        member.before, member.after = last, self
        last.after = self.before = member


class Answers(Links):
    """Members in the order in which they were completed: the oldest is `newer` than this head."""

    __slots__ = ()

    def __init__(self) -> None:
        self.older = self.newer = self

    def append(self, member: Links) -> None:
        """Puts a member that is not among them last."""
        last = self.older
        member.older, member.newer = last, self
        last.newer = self.older = member


NOWHERE: Final = Links()
NOWHERE.before = NOWHERE.after = NOWHERE.older = NOWHERE.newer = NOWHERE
