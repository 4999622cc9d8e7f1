"""Beside a library that answers every error of an app by handlers of its own."""

from __future__ import annotations

from typing import Any

import pytest
from flask.views import MethodView
from flask_smorest import Api, Blueprint

from tests.adapters.flask_bench import FlaskBench, code_of, replayed


@pytest.fixture(params=["route", "app"])
def bench(request: pytest.FixtureRequest) -> FlaskBench:
    """A flask-smorest API whose only resource is protected, by a decorator or as a whole."""
    bench = FlaskBench(protect="required" if request.param == "app" else None).start()
    bench.app.config.update(
        API_TITLE="Shop", API_VERSION="1", OPENAPI_VERSION="3.0.3", PROPAGATE_EXCEPTIONS=False
    )
    blueprint = Blueprint("orders", "orders")
    protected: Any = bench.idempotency.required if request.param == "route" else _as_it_is

    @blueprint.route("/")
    class Orders(MethodView):
        @blueprint.response(201)
        @protected
        def post(self) -> Any:
            return {"run": bench.ran()}

    Api(bench.app).register_blueprint(blueprint)

    # What such libraries do, and some apps: one handler for every exception there is.
    @bench.app.errorhandler(Exception)
    def everything(error: Exception) -> Any:
        return {"handled": type(error).__name__}, 500

    return bench


def _as_it_is(view: Any) -> Any:
    return view


def test_refusals_come_as_ours(bench: FlaskBench) -> None:
    """HTT-04, HTT-07: no handler of the app's makes another answer of them, nor a 500."""
    assert bench.post(data=b'{"a":1}').status_code == 201
    refused = [bench.post(key=None), bench.post(key="not a key"), bench.post(data=b'{"a":2}')]
    told = [code_of(got) for got in refused]
    assert told == ["idempotency_key_missing", "idempotency_key_invalid", "idempotency_key_reuse"]
    assert [got.headers["Cache-Control"] for got in refused] == ["no-store"] * 3
    assert bench.runs == 1


def test_replays_are_the_first_answer(bench: FlaskBench) -> None:
    """REP-01: what the library made of the view's result is what was kept."""
    first, again = bench.twice()
    assert (first.status_code, first.get_json()) == (201, {"run": 1})
    assert replayed(again)
    assert (again.status_code, again.data) == (201, first.data)
