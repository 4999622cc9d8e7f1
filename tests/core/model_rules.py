"""What a walk starts from: the rules under test, and who takes part under which policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from idemcore import machine
from idemcore.machine import Decision, Ending, PlainFingerprint, Settlement
from idemcore.policy import Policy
from idemcore.record import Record
from tests.core.model_store import ModelStore

POLICIES: Final = {
    (block, ignore): Policy(
        on_abandoned="block" if block else "rerun", on_mismatch="ignore" if ignore else "refuse"
    )
    for block in (False, True)
    for ignore in (False, True)
}
"""By ``on_abandoned="block"`` and ``on_mismatch="ignore"``."""


@dataclass(frozen=True)
class Rules:
    """What is under test: the machine, the store's contract, and the one rule that is the engine's own."""

    decide: Callable[[Record, PlainFingerprint, Policy, bytes], Decision] = machine.decide
    settle: Callable[[Ending, Policy, int], Settlement] = machine.settle
    store: ModelStore = field(default_factory=ModelStore)
    gives_up_after_complete: bool = False


class World(NamedTuple):
    """Who takes part, and under which policies.

    Attributes:
        block: the kinds of `on_abandoned` that requests come with; both, where workers are configured
            differently, as during a deploy.
        join: whether the effect is made in the caller's own transaction, with `join`.
        sweeper_pauses: whether time passes between what a sweeper sees and what it removes.
    """

    name: str
    workers: int = 2
    block: tuple[bool, ...] = (False,)
    join: bool = False
    sweeper_pauses: bool = False
