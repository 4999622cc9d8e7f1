"""The words of the model: a worker, the record with the truth about it, and one step from scene to scene.

A `Scene` is the record together with what is true, whatever the record says: which runs began and how they
ended. A `Worker` follows the engine's loop, and its token is its place among the workers. Tokens of those
who have left become nameless, so that any number of requests can come and go in a finite model.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from idemcore.stores.base import ReleaseTo
from tests.core.model_store import OWNED, Made, Row

GONE: Final = 100
"""The token of the record, when its owner is no longer there."""
STALE: Final = 101
"""A token that somebody saw and that the record will never carry again."""
OPERATOR: Final = 102
"""The maker of an outcome that is an operator's verdict."""

ONE_EFFECT: Final = "one effect: "
NO_LOST_RESULT: Final = "no lost result: "
NO_STUCK_KEY: Final = "no stuck key: "
RIGHT_REPLAY: Final = "right replay: "
SAME_REQUEST: Final = "same request: "
COMMITTED_IS_FINAL: Final = "committed is final: "
LATE_IS_FENCED: Final = "late is fenced: "
SWEEPER_SPARES: Final = "sweeper spares: "
OWN_CLAIM_IS_KNOWN: Final = "own claim is known: "
LEASE_IS_BOUNDED: Final = "lease is bounded: "

Place: TypeAlias = Literal["idle", "reserving", "taking", "running", "completing", "releasing"]

Ground: TypeAlias = Literal[
    "none",  # nobody has claimed it in this life
    "running",  # the latest claim's run has not ended, or died without a trace
    "held",  # the same, under block
    "failed",  # it ended in a failure, under rerun
    "nothing",  # user code said that nothing was done
    "doubt",  # user code left it open, or failed under block
    "cleared",  # an operator said that nothing was done
    "committed",  # the caller's own transaction was committed
    "stored",  # an answer was recorded
    "buried",  # a tombstone was recorded
]

FIRST: Final = "it is the first run"
LEASE_OVER: Final = "the lease of an unfinished run was over"
FAILED: Final = "the run before it ended in a failure"
NOTHING_DONE: Final = "user code had said that nothing was done"
CLEARED: Final = "an operator had said that nothing was done"
RETENTION_OVER: Final = "retention was over"
OUTLIVED: Final = "a run had gone on past its own retention"
OVERTAKEN: Final = "overtaken: "


class Worker(NamedTuple):
    """Where a worker stands in its loop.

    Attributes:
        standing: of its claim: ``none``, ``holds`` (the latest one), ``overtaken: <why>`` (a later one was
            let in), or ``bygone`` (of a life that has ended).
        effect: whether its run has had an effect that it has not disclaimed.
        seen: the token that its takeover compares with.
        outcome, to, ended: what it repeats, until the acknowledgement arrives.
    """

    at: Place = "idle"
    fingerprint: str = ""
    block: bool = False
    attempt: int = 0
    standing: str = "none"
    effect: bool = False
    seen: int = STALE
    outcome: Made | None = None
    to: ReleaseTo | None = None
    ended: Ground = "none"


class Scene(NamedTuple):
    """The record, and what is true. A life of the identity ends with its retention.

    Attributes:
        row: what the store holds.
        ground: how the latest claim stands.
        cause: what licensed that claim, as long as its effect is still to come.
        paid: the fingerprint of an effect of this life whose run has gone and did not disclaim it.
        effects: whether this life has seen an effect, disclaimed or not.
        picked: a sweeper has picked the record, and has not removed it yet.
    """

    row: Row | None = None
    ground: Ground = "none"
    cause: str = ""
    paid: str = ""
    effects: bool = False
    picked: bool = False

    @property
    def request(self) -> str:
        """The request that this life is about, as far as the record and its past tell."""
        return self.row.fingerprint if self.row is not None else self.paid

    @property
    def over(self) -> bool:
        """Whether this life has ended: past retention, nobody runs, and nobody has to settle it."""
        row = self.row
        return row is not None and row.past and not row.lease and self.ground not in ("held", "doubt")


class Mark(NamedTuple):
    """What a step means for other workers, see `touched`."""

    kind: Literal["overtaken", "bygone", "seen", "effect"]
    old: int | str = ""
    new: int = STALE


class Step(NamedTuple):
    """One event: what happened, what it leads to, what is wrong with it, and which repeat it is."""

    label: str
    scene: Scene
    worker: Worker | None = None
    marks: tuple[Mark, ...] = ()
    wrong: str = ""
    repeat: str = ""


def touched(worker: Worker, marks: tuple[Mark, ...]) -> Worker | None:
    """Another worker after a step; None where that step had an effect beside this one's for another request."""
    for mark in marks:
        match mark.kind:
            case "overtaken" if worker.standing == "holds":
                worker = worker._replace(standing=f"{OVERTAKEN}{mark.old}")
            case "bygone" if worker.standing != "none":
                worker = worker._replace(standing="bygone")
            case "seen" if worker.seen == mark.old:
                worker = worker._replace(seen=mark.new)
            case "effect" if worker.effect and worker.standing != "bygone" and worker.fingerprint != mark.old:
                return None
            case _:
                pass
    return worker


def leave(me: int, worker: Worker, scene: Scene) -> tuple[Worker, Scene, tuple[Mark, ...]]:
    """The worker goes, killed or done: what carries its token becomes nameless; its effect stays."""
    row, mark = scene.row, Mark("seen", me, STALE)
    if row is not None and row.outcome is not None and row.outcome.maker == me:
        row = row._replace(outcome=row.outcome._replace(maker=GONE))
    if row is not None and row.token == me:
        row, mark = row._replace(token=GONE), Mark("seen", me, GONE)
    paid = worker.fingerprint if worker.effect and worker.standing != "bygone" else scene.paid
    return Worker(), scene._replace(row=row, paid=paid), (mark,)


def unlawful(before: Scene, after: Scene) -> str:
    """What no step may do to a record, whoever takes it."""
    old, new = before.row, after.row
    if new is not None:
        if new.lease and (new.spent or new.past):
            return LEASE_IS_BOUNDED + "a lease stands past max_hold or past retention"
        if new.past and new.state in OWNED and not new.spent:
            return LEASE_IS_BOUNDED + "a claim is past retention before its max_hold"
        if new.outcome is not None and new.outcome.fingerprint != new.fingerprint:
            return RIGHT_REPLAY + "the record keeps the outcome of another request"
    if old is None or old == new or before.over:
        return ""
    if old.outcome is not None and (
        new is None or new.outcome is None or new.outcome[:2] != old.outcome[:2] or new.state != old.state
    ):
        return LATE_IS_FENCED + "a finished outcome was overwritten or removed before its time"
    if new is not None and new.fingerprint != old.fingerprint:
        return SAME_REQUEST + "the record changed its fingerprint"
    return ""


Thing = TypeVar("Thing", Scene, Worker, Row, Made)


def with_tokens(thing: Thing, names: dict[int, int]) -> Thing:
    """The same thing where the workers have other places."""
    match thing:
        case Scene(row=Row() as row):
            return thing._replace(row=with_tokens(row, names))
        case Row():
            outcome = None if thing.outcome is None else with_tokens(thing.outcome, names)
            return thing._replace(token=names.get(thing.token, thing.token), outcome=outcome)
        case Made():
            return thing._replace(maker=names.get(thing.maker, thing.maker))
        case Worker():
            outcome = None if thing.outcome is None else with_tokens(thing.outcome, names)
            return thing._replace(seen=names.get(thing.seen, thing.seen), outcome=outcome)
        case _:
            return thing


def with_requests_swapped(thing: Thing) -> Thing:
    """The same thing where request A is called B and B is called A."""
    match thing:
        case Scene():
            row = None if thing.row is None else with_requests_swapped(thing.row)
            return thing._replace(row=row, paid=_OTHER[thing.paid])
        case Row() | Worker():
            outcome = None if thing.outcome is None else with_requests_swapped(thing.outcome)
            return thing._replace(fingerprint=_OTHER[thing.fingerprint], outcome=outcome)
        case Made():
            return thing._replace(fingerprint=_OTHER[thing.fingerprint])
        case _:
            return thing


_OTHER: Final = {"A": "B", "B": "A", "": ""}
