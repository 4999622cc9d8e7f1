"""Walks through every state that a small world can reach, breadth first, and tells what it found there.

A state is a tuple of numbers: the scene, then each worker, each numbered when it is first seen. What can
follow from one worker and one scene is worked out once and looked up ever after, which is what makes a
million states a matter of seconds. States that differ only in which worker is which, or in which of the two
requests is called A, are one. Run as a program it prints what each world holds, and by which causes an
effect can happen twice.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from tests.core.model_rules import Rules, World
from tests.core.model_steps import Steps
from tests.core.model_world import (
    SAME_REQUEST,
    Mark,
    Scene,
    Step,
    Thing,
    Worker,
    touched,
    with_requests_swapped,
    with_tokens,
)

T = TypeVar("T")
State: TypeAlias = tuple[int, ...]
Paths: TypeAlias = dict[State, State | None]
"""Each state that was reached, with the one it was first reached from."""

RERUN: Final = World("rerun", sweeper_pauses=True)
BLOCK: Final = World("block", block=(True,))
MIXED: Final = World("rerun beside block", block=(False, True))
JOIN: Final = World("rerun, the effect joined to our mark", join=True)
BLOCK_JOIN: Final = World("block, the effect joined to our mark", block=(True,), join=True)
WORLDS: Final = (RERUN, BLOCK, MIXED, JOIN, BLOCK_JOIN)


@dataclass
class Found:
    """What an exploration came to.

    Attributes:
        states, steps: how many different ones.
        wrong: the first broken promise, or ``""``.
        story: the shortest way to it, one event each.
        repeats: each cause by which an effect happened again, with the number of steps that do so.
        examples: for each cause the shortest story.
        decisions: which decisions were taken, each with the record's state.
    """

    states: int = 0
    steps: int = 0
    wrong: str = ""
    story: list[str] = field(default_factory=list)
    repeats: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    decisions: set[str] = field(default_factory=set)


class Numbers(Generic[T]):
    """Things by number, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.things: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, thing: T) -> int:
        number = self._numbers.get(thing)
        if number is None:
            number = self._numbers[thing] = len(self.things)
            self.things.append(thing)
        return number


class Numbered(NamedTuple):
    """A step by numbers.

    Attributes:
        scene, worker: where it leads; worker is NOBODY where the step is no worker's.
        others: what it makes of the other workers, as far as that is known; None: it leaves them alone.
        notable: whether it is wrong or a repeat.
    """

    scene: int
    worker: int
    others: dict[int, int] | None
    notable: bool
    step: Step


NOBODY: Final = -1
CONFLICT: Final = -1
"""In a worker's place: the step had an effect beside this one's, for another request."""


class Explorer:
    """The states of one world under some rules."""

    def __init__(self, world: World, rules: Rules | None = None) -> None:
        self._steps = Steps(world, rules if rules is not None else Rules())
        self._scenes, self._workers = Numbers[Scene](), Numbers[Worker]()
        self._steps_of_others: dict[int, list[Numbered]] = {}
        self._steps_of_worker: dict[tuple[int, int, int], list[Numbered]] = {}
        self._touched: dict[tuple[Mark, ...], dict[int, int]] = {}
        orders = list(permutations(range(world.workers)))
        as_it_is = [View(order, swap=False) for order in orders]
        swapped = [View(order, swap=True) for order in orders]
        self._views = {"A": as_it_is, "B": swapped, "": as_it_is + swapped}
        self._same_as: dict[State, State] = {}
        self._start: State = (self._scenes.of(Scene()), *[self._workers.of(Worker())] * world.workers)

    def explore(self, most: int | None = None) -> Found:
        """Goes through all states, or the nearest `most`, until a promise is broken."""
        found = Found(decisions=self._steps.decisions)
        paths: Paths = {self._start: None}
        frontier = [self._start]
        while frontier and not found.wrong and (most is None or len(paths) < most):
            frontier = self._explore_from(frontier, paths, found)
        found.states = len(paths)
        return found

    def _explore_from(self, frontier: list[State], paths: Paths, found: Found) -> list[State]:
        """The states one step further on that nobody has seen yet."""
        following = []
        for state in frontier:
            for numbered, raw in self._leave(state):
                found.steps += 1
                if numbered.notable or CONFLICT in raw:
                    self._note(found, paths, state, numbered.step, raw)
                    if found.wrong:
                        return []
                reached = self._same(raw)
                if reached not in paths:
                    paths[reached] = state
                    following.append(reached)
        return following

    def _note(self, found: Found, paths: Paths, state: State, step: Step, raw: State) -> None:
        conflict = CONFLICT in raw
        if step.wrong or conflict:
            found.wrong = step.wrong or SAME_REQUEST + "effects for two requests, and nobody disclaimed one"
            found.story = self._story(
                paths, state, lambda each, there: each.wrong == step.wrong and (CONFLICT in there) == conflict
            )
            return
        found.repeats[step.repeat] += 1
        if step.repeat not in found.examples:
            found.examples[step.repeat] = self._story(paths, state, lambda each, _: each.repeat == step.repeat)

    def _leave(self, state: State) -> Iterator[tuple[Numbered, State]]:
        """Each step from here and where it leads, under the names that the workers have here."""
        scene, *workers = state
        for me, worker in enumerate(workers):
            steps = self._steps_of_worker.get((me, worker, scene))
            if steps is None:
                thing = self._workers.things[worker]
                steps = self._numbered(self._steps.of_worker(me, thing, self._scenes.things[scene]))
                self._steps_of_worker[me, worker, scene] = steps
            for numbered in steps:
                after = self._others_after(numbered, workers)
                after[me] = numbered.worker
                yield numbered, (numbered.scene, *after)
        steps = self._steps_of_others.get(scene)
        if steps is None:
            steps = self._numbered(self._steps.of_others(self._scenes.things[scene]))
            self._steps_of_others[scene] = steps
        for numbered in steps:
            yield numbered, (numbered.scene, *self._others_after(numbered, workers))

    def _numbered(self, steps: list[Step]) -> list[Numbered]:
        """The steps by numbers, once for all those that differ in their label alone."""
        numbered: dict[tuple[object, ...], Numbered] = {}
        for step in steps:
            worker = NOBODY if step.worker is None else self._workers.of(step.worker)
            scene, notable = self._scenes.of(step.scene), bool(step.wrong or step.repeat)
            others = self._touched.setdefault(step.marks, {}) if step.marks else None
            each = Numbered(scene, worker, others, notable, step)
            numbered.setdefault((scene, worker, step.marks, step.wrong, step.repeat), each)
        return list(numbered.values())

    def _others_after(self, numbered: Numbered, workers: list[int]) -> list[int]:
        known = numbered.others
        if known is None:
            return workers.copy()
        for worker in workers:
            if worker not in known:
                after = touched(self._workers.things[worker], numbered.step.marks)
                known[worker] = CONFLICT if after is None else self._workers.of(after)
        return [known[worker] for worker in workers]

    def _same(self, state: State) -> State:
        """The one state that stands for all that differ in names only: the least of them."""
        known = self._same_as.get(state)
        if known is None:
            views = self._views[self._scenes.things[state[0]].request]
            known = min(view.of(state, self._scenes, self._workers) for view in views)
            self._same_as[state] = known
        return known

    def _story(self, paths: Paths, state: State, ends: Callable[[Step, State], bool]) -> list[str]:
        """The events up to a state and the one that `ends` picks, under names that stay the same."""
        path = [state]
        while (before := paths[path[-1]]) is not None:
            path.append(before)
        path.reverse()
        story, here = [], self._start
        for target in path[1:]:
            label, here = next(
                (numbered.step.label, raw) for numbered, raw in self._leave(here) if self._same(raw) == target
            )
            story.append(label)
        return [*story, next(one.step.label for one, raw in self._leave(here) if ends(one.step, raw))]


class View:
    """A state under other names: the workers in another order, and A for B."""

    def __init__(self, order: tuple[int, ...], *, swap: bool) -> None:
        self._order = order
        self._tokens = {old: new for new, old in enumerate(order)}
        self._swap = swap
        self._plain = order == tuple(range(len(order))) and not swap
        self._scene: dict[int, int] = {}
        self._worker: dict[int, int] = {}

    def of(self, state: State, scenes: Numbers[Scene], workers: Numbers[Worker]) -> State:
        if self._plain:
            return state
        scene = self._scene.get(state[0])
        if scene is None:
            scene = self._scene[state[0]] = scenes.of(self._renamed(scenes.things[state[0]]))
        after = [scene]
        for old in self._order:
            number = state[old + 1]
            worker = self._worker.get(number)
            if worker is None:
                worker = self._worker[number] = workers.of(self._renamed(workers.things[number]))
            after.append(worker)
        return tuple(after)

    def _renamed(self, thing: Thing) -> Thing:
        renamed = with_tokens(thing, self._tokens)
        return with_requests_swapped(renamed) if self._swap else renamed


def main() -> None:
    """Prints the count of each world, then by which causes an effect happens twice, with a story for each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--workers", type=int, default=2, help="how many requests run at a time (default 2)")
    parser.add_argument("--most", type=int, help="look at so many states of each world only")
    options = parser.parse_args()
    for world in WORLDS:
        began = time.perf_counter()
        found = Explorer(world._replace(workers=options.workers)).explore(options.most)
        seconds = time.perf_counter() - began
        say(f"{world.name}: {found.states:,} states, {found.steps:,} steps, {seconds:.1f} s")
        if found.wrong:
            say(f"  BROKEN {found.wrong}")
            say(*(f"    {number}. {event}" for number, event in enumerate(found.story, 1)))
            raise SystemExit(1)
        if not found.repeats:
            say("  an effect never happens twice")
        for cause, count in found.repeats.most_common():
            say(f"  an effect happens again, because {cause} ({count:,} steps); the shortest story:")
            say(*(f"    {number}. {event}" for number, event in enumerate(found.examples[cause], 1)))


def say(*lines: str) -> None:
    """Writes lines to standard output."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
