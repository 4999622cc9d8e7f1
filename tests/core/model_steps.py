"""Every event that can come next: verbs with and without their acknowledgement, effects, endings, kills.

The engine's loop is the one of `idemcore/engine.py` and `idemcore/settling.py`: one token for each request,
reserve, decide, take over, run, settle; whatever fails is repeated with the same token; once an outcome
was handed to `complete`, the claim is never given up. Sleeping past a lease needs no event of its own: the
clock moves while a worker stands wherever it stands. Neither has giving up: to the others it is a kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from idemcore import machine
from idemcore.machine import Decision, Ending, PlainFingerprint, Settlement
from idemcore.stores.base import ReleaseTo
from tests.core import model_judge as judge
from tests.core.model_others import of_others
from tests.core.model_rules import POLICIES, Rules, World
from tests.core.model_store import VERDICT, Bid, Made, Row, report, tagged
from tests.core.model_world import (
    COMMITTED_IS_FINAL,
    GONE,
    LATE_IS_FENCED,
    NO_LOST_RESULT,
    ONE_EFFECT,
    OUTLIVED,
    OVERTAKEN,
    RETENTION_OVER,
    SAME_REQUEST,
    STALE,
    Ground,
    Mark,
    Scene,
    Step,
    Worker,
    leave,
    touched,
    unlawful,
)

MOST_ATTEMPTS: Final = 2
"""Attempt numbers above it count as it: the rules ask only whether it is the first."""
GIVEN_UP: Final[dict[Settlement, ReleaseTo]] = {
    Settlement.UNKNOWN: "unknown",
    Settlement.FORGET: "deleted",
    Settlement.RETRY: "released",
}


class Steps:
    """The events of one world under some rules."""

    def __init__(self, world: World, rules: Rules) -> None:
        self.world = world
        self.rules = rules
        self.decisions: set[str] = set()
        self._known_stuck: dict[Row, str] = {}

    def decide(
        self, row: Row, fingerprint: str, *, block: bool, ignore: bool = False, token: int = STALE
    ) -> Decision:
        """What the rules say to a request that meets this record."""
        policy = POLICIES[block, ignore]
        return self.rules.decide(report(row), PlainFingerprint(tagged(fingerprint)), policy, bytes([token]))

    def of_worker(self, me: int, worker: Worker, scene: Scene) -> list[Step]:
        """What this worker can do or suffer next."""
        match worker.at:
            case "idle":
                steps = [
                    step
                    for fingerprint in "AB"
                    for block in self.world.block
                    for step in self._reserve(me, Worker("reserving", fingerprint, block), scene, fresh=True)
                ]
            case "reserving":
                steps = list(self._reserve(me, worker, scene, fresh=False))
            case "taking":
                steps = list(self._take_over(me, worker, scene))
            case "running":
                steps = list(self._run(me, worker, scene))
            case "completing" if worker.outcome is not None:
                steps = list(self._complete(me, worker, scene, worker.outcome, "complete again"))
            case "releasing" if worker.to is not None:
                steps = list(self._release(me, worker, scene, worker.to, worker.ended, "release again"))
            case _:
                raise AssertionError(worker)
        if worker.at != "idle":
            steps.append(self._gone(me, worker, scene, "is killed"))
        return [self._judged(f"W{me + 1} ", scene, step) for step in steps]

    def of_others(self, scene: Scene) -> list[Step]:
        """What the clock, the sweeper and the operator can do next."""
        steps = of_others(self.world, self.rules.store, scene)
        return [self._judged("", scene, step) for step in steps]

    def _stuck(self, row: Row | None) -> str:
        if row is None:
            return ""
        known = self._known_stuck.get(row)
        if known is None:
            store = self.rules.store
            reasons = (judge.stuck(store, self.decide, row, block=block) for block in self.world.block)
            known = self._known_stuck[row] = next(filter(None, reasons), "")
        return known

    def _reserve(self, me: int, worker: Worker, scene: Scene, *, fresh: bool) -> Iterator[Step]:
        bid = Bid(me, worker.fingerprint, 1, worker.block)
        row, reported = self.rules.store.reserve(scene.row, bid)
        who = f"reserves for {worker.fingerprint}" + (" under block" if worker.block else "")
        if reported is None:
            yield from self._claimed(worker._replace(attempt=1), scene, row, who)
            return
        # A worker need not remember its on_mismatch: it matters here only.
        for ignore in (False, True):
            decision = self.decide(reported, worker.fingerprint, block=worker.block, ignore=ignore, token=me)
            self.decisions.add(f"{reported.state.value}: {type(decision).__name__}")
            wrong = judge.wrong_answer(decision, worker, scene, me, reported, ignore=ignore)
            said = f"{who}{', on_mismatch=ignore' if ignore else ''}: {type(decision).__name__}"
            match decision:
                case machine.Run(attempt):
                    running = worker._replace(at="running", attempt=attempt)
                    yield Step(f"{said}, runs", scene, running, wrong=wrong)
                case machine.TakeOver(seen, attempt):
                    attempt = min(attempt, MOST_ATTEMPTS)
                    taking = worker._replace(at="taking", attempt=attempt, seen=seen[0])
                    yield Step(said, scene, taking, wrong=wrong)
                case _ if fresh:
                    yield Step(said, scene, Worker(), wrong=wrong)
                case _:
                    yield self._gone(me, worker, scene, said, wrong)

    def _take_over(self, me: int, worker: Worker, scene: Scene) -> Iterator[Step]:
        bid = Bid(me, worker.fingerprint, worker.attempt, worker.block)
        row, granted = self.rules.store.take_over(scene.row, worker.seen, bid)
        who = f"takes over for {worker.fingerprint}"
        if row != scene.row:
            yield from self._claimed(worker, scene, row, who)
        elif granted:
            wrong = "" if judge.unrun(worker, scene) else ONE_EFFECT + "a claim was taken for the caller's own"
            running = worker._replace(at="running", seen=STALE)
            yield Step(f"{who} again, runs", scene, running, wrong=wrong)
        elif judge.unrun(worker, scene):
            yield Step(f"{who}: lost the race", scene, worker._replace(at="reserving", seen=STALE))
        else:
            yield self._gone(me, worker, scene, f"{who}: lost the race")

    def _claimed(self, worker: Worker, before: Scene, row: Row | None, who: str) -> Iterator[Step]:
        """The store has granted a claim; the acknowledgement arrives, or it does not."""
        wrong = judge.wrong_claim(worker, before)
        if before.row is not None and not before.over and before.row.fingerprint != worker.fingerprint:
            wrong = SAME_REQUEST + "a different request took over"
        cause = judge.licence(worker, before)
        scene = before._replace(row=row, ground="held" if worker.block else "running", cause=cause)
        marks: tuple[Mark, ...] = ()
        if cause == RETENTION_OVER:
            scene, marks = scene._replace(paid="", effects=False), (Mark("bygone"),)
        elif not judge.unrun(worker, before):
            marks = (Mark("overtaken", cause),)
        holder = worker._replace(standing="holds")
        yield Step(f"{who}, runs", scene, holder._replace(at="running", seen=STALE), marks, wrong)
        yield Step(f"{who}, acknowledgement lost", scene, holder._replace(at="reserving", seen=STALE), marks)
        if worker.at == "taking":
            yield Step(f"{who}, acknowledgement lost, tries again", scene, holder, marks)

    def _run(self, me: int, worker: Worker, scene: Scene) -> Iterator[Step]:
        yield from self._join(me, worker, scene) if self.world.join else self._effect(worker, scene)
        row, _ = self.rules.store.renew(scene.row, me)
        if row != scene.row:
            rightful = worker.standing == "holds" and scene.ground in ("running", "held", "committed")
            wrong = "" if rightful else LATE_IS_FENCED + "another's claim was renewed"
            yield Step("renews", scene._replace(row=row), worker, wrong=wrong)
        policy = POLICIES[worker.block, False]
        for ending in Ending:
            if ending in (Ending.SUCCESS, Ending.UNKEEPABLE) and not worker.effect:
                continue
            who = f"ends in {ending.name.lower()}"
            match self.rules.settle(ending, policy, worker.attempt):
                case Settlement.KEEP:
                    made = Made("answer", worker.fingerprint, me)
                    yield from self._complete(me, worker, scene, made, who)
                    if self.rules.gives_up_after_complete:
                        ground: Ground = "held" if worker.block else "running"
                        who = f"{who}, recording fails"
                        yield from self._release(me, worker, scene, "released", ground, who)
                case Settlement.TOMBSTONE:
                    made = Made("tombstone", worker.fingerprint, me)
                    yield from self._complete(me, worker, scene, made, who)
                case settlement:
                    to = GIVEN_UP[settlement]
                    ended = self._truth_of(ending, block=worker.block)
                    yield from self._release(me, worker, scene, to, ended, f"{who}, {to}")

    def _truth_of(self, ending: Ending, *, block: bool) -> Ground:
        """What an ending says about the run, whatever the rules make of it."""
        match ending:
            case Ending.REFUSAL | Ending.RELEASE | Ending.FORGET:
                return "nothing"
            case Ending.FAILURE if not block:
                return "failed"
            case _:
                return "doubt"

    def _effect(self, worker: Worker, scene: Scene) -> Iterator[Step]:
        if worker.effect:
            return
        if worker.standing == "bygone":
            late = worker._replace(effect=True)
            yield Step("has its effect after its retention", scene, late, repeat=OUTLIVED)
            return
        holds = worker.standing == "holds"
        cause = scene.cause if holds else worker.standing.removeprefix(OVERTAKEN)
        wrong = ""
        if scene.paid not in ("", worker.fingerprint):
            wrong = SAME_REQUEST + "an effect beside one for another request, which nobody disclaimed"
        yield Step(
            "has its effect",
            scene._replace(effects=True, cause="" if holds else scene.cause),
            worker._replace(effect=True),
            (Mark("effect", worker.fingerprint),),
            wrong,
            cause if scene.effects else "",
        )

    def _join(self, me: int, worker: Worker, scene: Scene) -> Iterator[Step]:
        """The caller's transaction commits, with the mark; where the mark is refused, it rolls back."""
        row, joined = self.rules.store.join(scene.row, me)
        if joined != "joined":
            return
        rightful = worker.standing == "holds" and scene.ground in ("running", "held") and not worker.effect
        wrong = "" if rightful else COMMITTED_IS_FINAL + "a second transaction was committed"
        for step in self._effect(worker._replace(effect=False), scene._replace(row=row, ground="committed")):
            yield step._replace(label="commits its transaction", wrong=wrong or step.wrong)

    def _complete(self, me: int, worker: Worker, scene: Scene, made: Made, who: str) -> Iterator[Step]:
        bid = Bid(me, worker.fingerprint, worker.attempt, worker.block)
        row, stored = self.rules.store.complete(scene.row, bid, made)
        wrong = judge.wrong_completion(worker, scene, row, made, stored=stored)
        if row == scene.row:
            label = f"{who}: {'stored' if stored else 'superseded'}"
            yield self._gone(me, worker, scene, label, wrong)
            return
        after = scene._replace(row=row, ground="stored" if made.kind == "answer" else "buried", cause="")
        marks: tuple[Mark, ...] = ()
        if scene.over:
            after, marks = after._replace(paid="", effects=False), (Mark("bygone"),)
        done = self._gone(me, worker, after, f"{who}: stored", wrong)
        yield done._replace(marks=(*marks, *done.marks))
        repeating = worker._replace(at="completing", outcome=made)
        yield Step(f"{who}: stored, acknowledgement lost", after, repeating, marks, wrong)

    def _release(
        self, me: int, worker: Worker, scene: Scene, to: ReleaseTo, ended: Ground, who: str
    ) -> Iterator[Step]:
        row, _ = self.rules.store.release(scene.row, me, to)
        if ended == "nothing" and scene.ground != "committed":
            worker = worker._replace(effect=False)
        if row == scene.row:
            yield self._gone(me, worker, scene, f"{who}: it changes nothing")
            return
        wrong = ""
        if worker.standing != "holds":
            wrong = LATE_IS_FENCED + "another's claim was given up"
        elif scene.ground == "committed":
            ended = "buried"
            if row is None or row.outcome is None:
                wrong = COMMITTED_IS_FINAL + "a committed record was given up"
        after = scene._replace(row=row, ground=ended, cause="")
        if row is not None and row.past:
            wrong = NO_LOST_RESULT + "a settled record is past its retention at once"
        yield self._gone(me, worker, after, who, wrong)
        repeating = worker._replace(at="releasing", attempt=0, to=to, ended=ended)
        yield Step(f"{who}, acknowledgement lost", after, repeating, wrong=wrong)

    def _gone(self, me: int, worker: Worker, scene: Scene, label: str, wrong: str = "") -> Step:
        nobody, after, marks = leave(me, worker, scene)
        return Step(label, after, nobody, marks, wrong)

    def _judged(self, who: str, before: Scene, step: Step) -> Step:
        """The step with its tokens in order, and with what no step may do."""
        marks, worker, old, new = step.marks, step.worker, before.row, step.scene.row
        if old is not None and old.token in (GONE, VERDICT) and (new is None or new.token != old.token):
            nameless = Mark("seen", old.token)
            marks = (*marks, nameless)
            worker = None if worker is None else touched(worker, (nameless,))
        wrong = step.wrong or unlawful(before, step.scene) or self._stuck(step.scene.row)
        return step._replace(label=who + step.label, marks=marks, worker=worker, wrong=wrong)
