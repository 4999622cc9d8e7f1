"""The machine in every state that two requests, their store and time can reach, and in some that three can.

`explorer.py` walks, `model_steps.py` says what can happen, `model_judge.py` what is promised. A failure
prints the shortest story that breaks a promise. The mutants show that the walk would notice.
"""

from __future__ import annotations

import pytest

from tests.core.explorer import BLOCK, BLOCK_JOIN, JOIN, MIXED, RERUN, WORLDS, Explorer, Found
from tests.core.model_rules import World
from tests.core.model_world import CLEARED, FAILED, LEASE_OVER, NOTHING_DONE, OUTLIVED
from tests.core.mutants import MUTANTS, Mutant

# By what an effect may happen twice: what the program chose, what it said, what an operator said.
ADMITTED = {
    RERUN: {LEASE_OVER, FAILED, NOTHING_DONE, CLEARED, OUTLIVED},
    BLOCK: {NOTHING_DONE, CLEARED, OUTLIVED},
    MIXED: {LEASE_OVER, FAILED, NOTHING_DONE, CLEARED, OUTLIVED},
    JOIN: set(),
    BLOCK_JOIN: set(),
}

# Every pair of state and decision that a world with all policies leads to. What is missing cannot happen:
# a committed record is never one's own before one's code has run, and no model record is unreadable.
DECISIONS = {
    "claimed: Busy",
    "claimed: Mismatch",
    "claimed: OutcomeUnknown",
    "claimed: Run",
    "claimed: TakeOver",
    "committed: Busy",
    "committed: Mismatch",
    "committed: NotReplayable",
    "completed: Mismatch",
    "completed: Replayable",
    "released: Mismatch",
    "released: TakeOver",
    "tombstone: Mismatch",
    "tombstone: NotReplayable",
    "unknown: Mismatch",
    "unknown: OutcomeUnknown",
}


def explored(world: World, most: int | None = None) -> Found:
    """Explores, prints how much there was, and fails with the story where a promise is broken."""
    found = Explorer(world).explore(most)
    print(f"{world.name}, {world.workers} workers: {found.states:,} states, {found.steps:,} steps")  # noqa: T201
    if found.wrong:
        story = "\n".join(f"  {number}. {event}" for number, event in enumerate(found.story, 1))
        pytest.fail(f"{found.wrong}\n{story}", pytrace=False)
    return found


@pytest.mark.parametrize(
    "world",
    [pytest.param(world, marks=pytest.mark.slow if world is MIXED else ()) for world in WORLDS],
    ids=lambda world: world.name,
)
def test_two_workers_keep_every_promise_in_every_state(world: World) -> None:
    """LEA-03, LEA-04, OUT-04: kills, sleep, lost answers, sweeper and operator at any point; an effect happens
    twice only by what the documentation admits, and by all of that, so nothing admitted is a mere fear.
    """
    assert set(explored(world).repeats) == ADMITTED[world]


def test_the_walk_meets_every_decision_that_can_be_taken() -> None:
    """A row that no state leads to would not have been tested by the walk."""
    met = set().union(*(Explorer(world).explore(most=8_000).decisions for world in (RERUN, BLOCK_JOIN)))
    assert met == DECISIONS


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_three_workers_keep_every_promise(world: World) -> None:
    """A third request finds nothing that two did not: all states of the smallest world, the nearest of others.

    `explorer.py --workers 3` goes through all of them.
    """
    most = None if world is BLOCK_JOIN else 20_000
    assert explored(world._replace(workers=3), most).states >= 20_000


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.clause)
def test_the_walk_notices_a_wrong_rule(mutant: Mutant) -> None:
    """Each clause of the tables and of the store contract holds up a promise, which breaks without it."""
    found = Explorer(mutant.world, mutant.rules).explore()
    assert found.wrong.startswith(mutant.breaks), found.wrong
    assert found.story


def test_a_story_reads_as_it_happened() -> None:
    """Whoever breaks a rule gets told how: who did what, in order, under names that stay the same."""
    forgetful = next(mutant for mutant in MUTANTS if mutant.clause == "forget on any attempt")
    assert Explorer(forgetful.world, forgetful.rules).explore().story == [
        "W1 reserves for A, runs",
        "W1 has its effect",
        "W1 ends in failure, released",
        "W1 reserves for A: TakeOver",
        "W1 takes over for A, runs",
        "W1 ends in refusal, deleted",
        "W1 reserves for B, runs",
        "W1 has its effect",
    ]
