"""The page about the machine says what the code does: every arrow, every row, every settlement."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import get_args

from idemcore import MemoryStore, Policy
from idemcore.identity import Identity
from idemcore.machine import Decision, Ending, settle
from idemcore.record import Answer, Claim, State, Tombstone
from idemcore.testing import FakeClock

PAGE = (Path(__file__).parent.parent / "docs" / "machine.md").read_text()

IDENTITY = Identity("s", "o", "k")
MINE, OTHERS = b"m" * 16, b"o" * 16
LEASE, HOLD, RETENTION = 30.0, 600.0, 3600.0


def claim(token: bytes = MINE, *, hold: bool = False) -> Claim:
    return Claim(IDENTITY, "v1.0:f", token, 1, LEASE, HOLD, RETENTION, hold=hold)


class Stage:
    """A store that holds one record of mine in a given state."""

    def __init__(self, state: State | None) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        if state is None:
            return
        self.store.reserve(claim())
        match state:
            case State.COMPLETED:
                self.store.complete(claim(), Answer("returned", b"", b""))
            case State.TOMBSTONE:
                self.store.complete(claim(), Tombstone("lost"))
            case State.RELEASED:
                self.store.release(claim(), "released")
            case State.UNKNOWN:
                self.store.release(claim(), "unknown")
            case State.COMMITTED:  # as a store that joins a caller's transaction leaves it
                self.store._shelf.entries[IDENTITY].state = State.COMMITTED
            case State.CLAIMED:
                pass

    def state(self) -> str:
        record = self.store.get(IDENTITY)
        return "[*]" if record is None else record.state.value


def verbs(stage: Stage) -> list[tuple[str, object]]:
    store = stage.store
    answer = Answer("returned", b"", b"x")
    return [
        ("reserve", lambda: store.reserve(claim(OTHERS))),
        ("take_over", lambda: store.take_over(MINE, claim(OTHERS))),
        ("complete", lambda: store.complete(claim(), answer)),
        ("complete", lambda: store.complete(claim(), Tombstone("t"))),
        ("release", lambda: store.release(claim(), "released")),
        ("release", lambda: store.release(claim(), "unknown")),
        ("release", lambda: store.release(claim(), "deleted")),
        ("resolve", lambda: store.resolve(IDENTITY, MINE, "released", RETENTION)),
        ("resolve", lambda: store.resolve(IDENTITY, MINE, answer, RETENTION)),
        ("resolve", lambda: store.resolve(IDENTITY, MINE, Tombstone("t"), RETENTION)),
        ("forget", lambda: store.forget(IDENTITY, MINE)),
        ("sweep", lambda: store.sweep(10)),
    ]


def arrows_of_the_code() -> set[tuple[str, str, str]]:
    """Every change that a verb makes, from every state, with the lease standing, over, and past retention."""
    found = set()
    states: list[State | None] = [None, *State]
    for state, waited in product(states, (0.0, LEASE + 1, HOLD + RETENTION + 1)):
        for number in range(len(verbs(Stage(state)))):
            stage = Stage(state)
            stage.clock.advance(waited)
            before = stage.state()
            kept = stage.store._shelf.entries.get(IDENTITY)
            token = None if kept is None else kept.token
            name, call = verbs(stage)[number]
            call()  # type: ignore[operator]
            entry = stage.store._shelf.entries.get(IDENTITY)
            changed = stage.state() != before or (entry is not None and entry.token != token)
            # A record that may be forgotten is as good as none: that arrow is drawn from nothing.
            forgotten = waited > HOLD and name in ("reserve", "complete")
            if changed and not forgotten:
                found.add((before, stage.state(), name))
    return found


def test_the_diagram_has_the_arrows_that_the_verbs_make() -> None:
    """None is missing, none is made up."""
    drawn = {
        (before, after, name)
        for before, after, names in re.findall(r"^    (\S+) --> (\S+): (.+)$", PAGE, re.MULTILINE)
        for name in names.split(", ")
    }
    assert drawn == arrows_of_the_code()


def test_every_decision_stands_in_the_table() -> None:
    """Rows are numbered as in the code's comments, and no decision is left out."""
    rows = re.findall(r"^\| (\d+[ab]?) \|.*\| `(\w+)`", PAGE, re.MULTILINE)
    numbers = ["1", "2", "3", "4", "5", "6", "7a", "7b", "8", "9", "10", "11", "12"]
    assert [number for number, _ in rows] == numbers
    decisions = {decision.__name__: decision for decision in get_args(Decision)}
    assert {name for _, name in rows} == set(decisions)
    for name, decision in decisions.items():
        said = re.findall(r"\d+[ab]?", str(decision.__doc__).partition(". ")[0])
        assert said == [number for number, decided in rows if decided == name]


def test_the_table_of_settlements_is_that_of_the_code() -> None:
    """Each ending, under both policies, on the first attempt and after it."""
    rows = re.findall(r"^\| `(\w+)`.*? \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert [name for name, *_ in rows] == [ending.name for ending in Ending]
    for name, rerun, block in rows:
        block = rerun if block == "the same" else block
        for text, policy in ((rerun, Policy()), (block, Policy(on_abandoned="block"))):
            first, _, later = text.partition("; after the first attempt ")
            settled = [settle(Ending[name], policy, attempt).value for attempt in (1, 2)]
            assert settled == [first, later or first]
