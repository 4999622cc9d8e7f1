"""The scenario table, on every station and store, under wsgiref's validator on both sides."""

from __future__ import annotations

from wsgiref.validate import validator

import pytest

from idemcore import Engine
from tests.adapters import (
    scenarios_body,
    scenarios_key,
    scenarios_options,
    scenarios_outcome,
    scenarios_replay,
)
from tests.adapters.http import Http, InProcess
from tests.adapters.scenario import SCENARIOS, Scenario
from tests.adapters.shop import Shop
from tests.adapters.stations import STATIONS

TABLES = (scenarios_body, scenarios_key, scenarios_options, scenarios_outcome, scenarios_replay)


@pytest.mark.parametrize("station", STATIONS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario(scenario: Scenario, station: str, engine: Engine) -> None:
    """The scenario's own docstring says what holds."""
    inside = {"around": validator} if station in ("wsgi", "django") else {}
    app = STATIONS[station](Shop(), engine, **scenario.options, **inside)
    scenario.play(Http(InProcess(app)))


def test_every_scenario_is_in_the_table_once() -> None:
    """A scenario that shadows another by its name would never run."""
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert {scenario.play.__module__ for scenario in SCENARIOS} == {table.__name__ for table in TABLES}
