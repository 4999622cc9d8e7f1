"""Plays scenes on running stacks and, when all are played, has the ledgers checked."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from batch import killed_batch
from crashes import CRASHES
from ledger import Charge, charges, differences, unbooked
from scenes import EVERYDAY
from show import Show
from stack import TENANTS, Stack, started, wait_until_up
from stage import Outcome, Progress, Scene, Stage

WITHOUT = "library switched off"
SCENES: Mapping[str, Scene] = {**EVERYDAY, **CRASHES, "a batch killed at half": killed_batch}
SHORT_LEASE = 2.0


@dataclass(frozen=True)
class Verdict:
    """What was played, and what is wrong with the ledgers; nothing, when they are exact."""

    outcomes: Sequence[Outcome]
    charged: int
    must_be: int
    differences: Sequence[str]

    @property
    def ok(self) -> bool:
        return not self.differences and all(outcome.ok for outcome in self.outcomes)


class Stacks:
    """A stack for everyday scenes, one with a short lease for crashes, one without the library.

    Starting one takes seconds, and scenes spend theirs waiting, so the next one starts while one is in use.
    """

    def __init__(self, names: Sequence[str], place: Path, *, protected: bool) -> None:
        self._place = place
        self._options: Mapping[str, dict[str, Any]] = {
            "everyday": {"protected": protected},
            "crashing": {"protected": protected, "lease": SHORT_LEASE},
            "bare": {"protected": False},
        }
        self._to_start = [kind for kind in self._options if kind in map(kind_of, names)]
        self._running: dict[str, Stack] = {}
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._ends:
            for stack in self._running.values():
                stack.server.terminate()  # all at once; the rest waits for each

    def of(self, name: str) -> Stack:
        """The stack that a scene is played on, up and running."""
        kind = kind_of(name)
        while kind not in self._running:
            self._start_next()
        wait_until_up(self._running[kind])
        if self._to_start:
            self._start_next()
        return self._running[kind]

    def protected(self) -> Iterator[Stack]:
        """Those whose ledgers must be exact."""
        return (stack for kind, stack in self._running.items() if kind != "bare")

    def _start_next(self) -> None:
        kind = self._to_start.pop(0)
        self._running[kind] = self._ends.enter_context(started(self._place / kind, **self._options[kind]))


def kind_of(name: str) -> str:
    return "bare" if name == WITHOUT else "everyday" if name in EVERYDAY else "crashing"


def play(names: Sequence[str], stacks: Stacks, show: Show) -> Verdict:
    """The named scenes, in order; then the check."""
    outcomes: list[Outcome] = []
    must: Counter[Charge] = Counter()
    everyday = {name: EVERYDAY[name] for name in names if name in EVERYDAY}
    with show:
        for name in names:
            show.playing(name)
            stack = stacks.of(name)
            if name == WITHOUT:
                outcome = switched_off(everyday, stack)
            else:
                stage = perform(name, SCENES[name], stack, show.progress)
                must += stage.must_be_charged
                outcome = stage.outcome
            outcomes.append(outcome)
            show.played(outcome)
    ledger: Counter[Charge] = Counter()
    wrong: list[str] = []
    for stack in stacks.protected():
        try:
            ledger += charges(stack.ledger)
            wrong += unbooked(stack.ledger, stack.database, TENANTS.values())
        except ValueError as damaged:
            wrong.append(str(damaged))
    return Verdict(outcomes, ledger.total(), must.total(), differences(ledger, must) + wrong)


def perform(name: str, scene: Scene, stack: Stack, progress: Progress) -> Stage:
    """One scene, whatever happens in it."""
    stage = Stage(stack, name, (scene.__doc__ or "").strip(), progress)
    try:
        try:
            scene(stage)
        finally:
            stage.finish()
    except Exception as error:  # a scene that breaks is a scene that failed
        stage.outcome.wrong.append("".join(traceback.format_exception_only(error)).strip())
    return stage


def switched_off(scenes: Mapping[str, Scene], bare: Stack) -> Outcome:
    """The same script without the library; what its ledger must hold then is known just as exactly."""
    whole = Outcome(WITHOUT, "The same script, with the library switched off.", began_at=time.time())
    must: Counter[Charge] = Counter()
    unprotected: Counter[Charge] = Counter()
    for name, scene in scenes.items():
        stage = perform(name, scene, bare, lambda _done, _total: None)
        must += stage.must_be_charged
        unprotected += stage.unprotected
        whole.exchanges += stage.outcome.exchanges
        whole.ledger += stage.outcome.ledger
    whole.ended_at = time.time()
    ledger = charges(bare.ledger)
    told = Counter(str(exchange.answer) for exchange in whole.exchanges)
    whole.sent = f"the everyday scenes again: {len(whole.exchanges)} sends for {must.total()} payments"
    whole.came_back = ", ".join(f"{count} × {answer}" for answer, count in sorted(told.items()))
    whole.charged = f"{ledger.total()} times: {(ledger - must).total()} duplicates"
    whole.wrong = differences(ledger, unprotected)
    return whole
