"""What happens to a record without any worker: time passes, a sweeper comes by, an operator decides."""

from __future__ import annotations

from collections.abc import Iterator

from idemcore.record import State
from tests.core.model_rules import World
from tests.core.model_store import Made, ModelStore, Row, Verdict, lease_over, max_hold_over, retention_over
from tests.core.model_world import (
    COMMITTED_IS_FINAL,
    ONE_EFFECT,
    OPERATOR,
    SWEEPER_SPARES,
    Ground,
    Mark,
    Scene,
    Step,
)


def of_others(world: World, store: ModelStore, scene: Scene) -> Iterator[Step]:
    """Every such event that can come next."""
    if scene.row is not None:
        yield from clock_steps(scene, scene.row)
        yield from operator_steps(store, scene, scene.row)
    yield from sweeper_steps(world, store, scene)


def clock_steps(scene: Scene, row: Row) -> Iterator[Step]:
    for label, moved in (
        ("the lease is over", lease_over(row)),
        ("max_hold is over", max_hold_over(row)),
        ("retention is over", retention_over(row)),
    ):
        if moved is not None:
            yield Step(label, scene._replace(row=moved))


def sweeper_steps(world: World, store: ModelStore, scene: Scene) -> Iterator[Step]:
    if not scene.picked and (scene.row is None or not store.sweepable(scene.row)):
        return
    if world.sweeper_pauses and not scene.picked:
        yield Step("a sweeper picks the record", scene._replace(picked=True))
        return
    if store.sweep(scene.row) == scene.row:
        yield Step("the sweeper leaves the record alone", scene._replace(picked=False))
        return
    wrong = "" if scene.over else SWEEPER_SPARES + f"a record was removed that is {scene.ground}"
    yield Step("a sweeper removes the record", Scene(), marks=(Mark("bygone"),), wrong=wrong)


def operator_steps(store: ModelStore, scene: Scene, row: Row) -> Iterator[Step]:
    answer, tombstone = (
        Made("answer", row.fingerprint, OPERATOR),
        Made("tombstone", row.fingerprint, OPERATOR),
    )
    verdicts: tuple[tuple[str, Verdict, Ground], ...] = (
        ("not done", "released", "cleared"),
        ("done, with this answer", answer, "stored"),
        ("done", tombstone, "buried"),
    )
    for words, verdict, ground in verdicts:
        after, applied = store.resolve(row, row.token, verdict)
        if not applied or after == row:
            continue
        wrong = wrong_verdict(scene, row, verdict)
        settled = scene._replace(row=after, ground=ground, cause="")
        yield Step(f"an operator says: {words}", settled, wrong=wrong)


def wrong_verdict(scene: Scene, row: Row, verdict: Verdict) -> str:
    """What is wrong with a verdict that the store has just applied."""
    if scene.ground == "committed" and verdict == "released":
        return COMMITTED_IS_FINAL + "an operator freed it for another run"
    ended = scene.ground in ("running", "held", "committed") and not row.lease
    closed_in_time = verdict != "released" and row.state is State.RELEASED
    if scene.ground == "doubt" or ended or closed_in_time:
        return ""
    return ONE_EFFECT + f"an operator settled a run that is {scene.ground}"
