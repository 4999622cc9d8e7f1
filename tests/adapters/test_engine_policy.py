"""What an engine was told once holds for its HTTP requests too, unless an app or a route says otherwise."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from idemcore import ConfigurationError, Engine, Policy
from idemcore.http import Guard, HTTPPolicy
from idemcore_flask import Idempotency
from tests.adapters.flask_bench import FlaskBench, code_of
from tests.adapters.http import Http, InProcess
from tests.adapters.shop import Shop
from tests.adapters.stations import STATIONS

OWN = Policy(
    retention=timedelta(days=90),
    lease=timedelta(seconds=20),
    max_hold=timedelta(hours=2),
    on_mismatch="ignore",
    on_abandoned="block",
    identity="key+content",
    wait=timedelta(seconds=3),
    keep=(KeyError,),
    unknown=(TimeoutError,),
)


@pytest.mark.parametrize("station", [name for name in STATIONS if name != "django"])
def test_the_engines_policy_holds_where_no_option_is_given(station: str) -> None:
    """An engine that blocks what nobody finished blocks a failed request too."""
    idem = Engine("memory://", policy=Policy(on_abandoned="block"), observers=())
    http = Http(InProcess(STATIONS[station](Shop(), idem)))
    assert http.post("/first/500").status == 500
    assert http.post("/first/500").code == "outcome_unknown"
    assert http.runs == 1


def test_each_thing_that_both_know_comes_from_the_engine() -> None:
    """But `keep`, which is about exceptions there and about answers here."""
    policy = Guard(Engine("memory://", policy=OWN), {}).policy
    core = policy.core_policy()
    shared = {field.name for field in fields(Policy) if field.init} - {"keep"}
    assert {name: getattr(core, name) for name in shared} == {name: getattr(OWN, name) for name in shared}
    assert {name: getattr(policy, name) for name in shared} == {name: getattr(OWN, name) for name in shared}
    assert core.keep == ()


def test_an_engine_without_a_policy_leaves_the_defaults() -> None:
    """Those of the page."""
    assert Guard(Engine("memory://"), {}).policy == HTTPPolicy()


def test_options_count_before_the_engines_policy() -> None:
    """The route's first, then the app's, then the setting, then the engine's."""
    bench = FlaskBench(lease=timedelta(seconds=40))
    bench.options["engine"] = Engine("memory://", policy=OWN, observers=())
    bench.app.config["IDEMCORE_WAIT"] = 0
    bench.start()
    bench.app.post("/")(bench.idempotency.required(on_abandoned="rerun", identity="key")(failing(bench)))
    assert [bench.post().status_code for _ in range(2)] == [500, 500]
    assert bench.runs == 2


def failing(bench: FlaskBench) -> Any:
    def view() -> tuple[str, int]:
        bench.ran()
        return "failed", 500

    return view


def test_an_option_of_a_route_is_not_measured_by_what_it_will_not_stand_beside() -> None:
    """A lease that is longer than the usual max_hold is right under an engine that holds for hours."""
    bench = FlaskBench()
    bench.options["engine"] = Engine("memory://", policy=OWN, observers=())
    bench.start()
    bench.app.post("/")(bench.idempotency.required(lease=timedelta(hours=1))(lambda: "done"))
    bench.idempotency.check(bench.app)
    assert bench.post().status_code == 200
    with pytest.raises(ConfigurationError, match="max_hold"):
        Idempotency().required(lease=timedelta(hours=1), max_hold=timedelta(minutes=1))
    usual = FlaskBench().start()
    usual.app.post("/")(usual.idempotency.required(lease=timedelta(hours=1))(lambda: "done"))
    with pytest.raises(ConfigurationError, match="max_hold"):
        usual.idempotency.check(usual.app)


def test_options_that_do_not_go_with_the_engines_policy_fail_at_start_up() -> None:
    """Not at the first payment."""
    idem = Engine("memory://", policy=OWN)
    with pytest.raises(ConfigurationError, match="retention"):
        Guard(idem, {"retention": timedelta(seconds=10)})


def test_the_engines_doubts_are_the_views() -> None:
    """`unknown` of the engine names what a view may raise."""
    bench = FlaskBench()
    bench.options["engine"] = Engine("memory://", policy=Policy(unknown=(TimeoutError,)), observers=())
    bench.start()

    @bench.app.post("/")
    @bench.idempotency.required
    def view() -> str:
        bench.ran()
        raise TimeoutError

    assert bench.post().status_code == 500
    assert code_of(bench.post()) == "outcome_unknown"
    assert bench.runs == 1
