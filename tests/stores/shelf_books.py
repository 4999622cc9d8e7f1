"""The memory store's books, read back link by link: whether they say what its records say."""

from __future__ import annotations

from idemcore.record import State
from idemcore.stores.entry import Entry
from idemcore.stores.memory import MemoryStore
from idemcore.stores.orders import NOWHERE, Answers, Line, Links


def in_line(line: Line) -> list[Entry]:
    """Its members."""
    return _ring(line, "after", "before")


def answered(answers: Answers) -> list[Entry]:
    """Those whose answers may be given up, the oldest first."""
    return _ring(answers, "newer", "older")


def _ring(head: Links, onward: str, back: str) -> list[Entry]:
    """The members of an order, forwards; backwards they are the same."""
    members: list[Entry] = []
    last, at = head, getattr(head, onward)
    while isinstance(at, Entry):
        assert getattr(at, back) is last
        members.append(at)
        last, at = at, getattr(at, onward)
    assert at is head
    assert getattr(head, back) is last
    return members


def sizes(store: MemoryStore) -> list[int]:
    """How many records, places in lines and answers there are."""
    shelf = store._shelf
    places = sum(len(in_line(line)) for line in shelf._lines.values())
    return [len(shelf.entries), places, len(answered(shelf._answers))]


def check_books(store: MemoryStore) -> None:
    """Fails unless every record is in its line and counted once, and nothing else is."""
    shelf = store._shelf
    assert not shelf._torn
    entries = list(shelf.entries.values())
    assert sorted(shelf._turns) == sorted(shelf._lines)
    waiting = []
    for line in shelf._lines.values():
        members = in_line(line)
        assert [entry.expires_at for entry in members] == sorted(entry.expires_at for entry in members)
        waiting += members
    assert {id(entry) for entry in waiting} == {id(entry) for entry in entries if entry.after is not NOWHERE}
    assert len(waiting) == len({id(entry) for entry in waiting})
    assert all(entry.hold for entry in entries if entry.after is NOWHERE)
    kept = answered(shelf._answers)
    assert {id(entry) for entry in kept} == {id(entry) for entry in entries if entry.meta or entry.body}
    assert len(kept) == len({id(entry) for entry in kept})
    assert all(entry.state is State.COMPLETED for entry in kept)
    assert shelf._answer_bytes == sum(len(entry.meta) + len(entry.body) for entry in kept)
    assert NOWHERE.before is NOWHERE.after is NOWHERE.older is NOWHERE.newer is NOWHERE
