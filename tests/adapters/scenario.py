"""A scenario is a function that speaks HTTP to the shop, with the options that the shop is protected by.

The same table runs on every station, on every store and over real servers, so no two of them can drift.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.http import Http


@dataclass(frozen=True)
class Scenario:
    """One row of the table.

    Attributes:
        play: what is sent and must come back.
        options: of the protection; a scenario without any also runs over real servers.
        threads: whether the server has to serve two requests at a time.
    """

    play: Callable[[Http], None]
    options: dict[str, Any] = field(default_factory=dict)
    threads: bool = False

    @property
    def name(self) -> str:
        return self.play.__name__


SCENARIOS: list[Scenario] = []


def scenario(
    *, threads: bool = False, **options: Any
) -> Callable[[Callable[[Http], None]], Callable[[Http], None]]:
    """Enters a function into the table; its docstring says what holds."""

    def enter(play: Callable[[Http], None]) -> Callable[[Http], None]:
        assert play.__doc__
        SCENARIOS.append(Scenario(play, options, threads))
        return play

    return enter
