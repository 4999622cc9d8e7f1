"""The database is down: at the start, between a claim and its outcome, and for a moment in between."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest
from flask import Flask

from idemcore import InProgress, StoreUnavailable
from idemcore_flask import Idempotency
from tests.stores.bad_days.day import Day

ENDINGS = [signal.SIGINT, signal.SIGQUIT]


def test_down_at_the_start_refuses_and_runs_nothing(day: Day) -> None:
    """DEG-01: `check()` and every request say so until the server is there; then nothing has to be done."""
    day.server.stop()
    try:
        for verb in (day.idem.check, day.idem.create_schema, day.pay):
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                verb()
        assert day.ledger == []
        assert day.names() == ["StoreFailed"]
    finally:
        day.server.start()
    day.idem.check()
    assert day.pay() == "paid 1"
    assert day.pay() == "replay paid 1"


def test_a_worker_that_starts_meanwhile_refuses_and_goes_on(day: Day) -> None:
    """DEG-01: an app made as the page says starts without its store, refuses, and is well when that is back."""

    def create_app() -> Flask:
        app = Flask("shop")
        idempotency = Idempotency(app, engine=day.idem, scope="tenant".__str__)
        app.post("/pay")(idempotency.required(lambda: day.ledger.append("k-1") or "paid"))
        with suppress(StoreUnavailable):
            idempotency.check(app)
        return app

    day.server.stop()
    try:
        client = create_app().test_client()
        got = client.post("/pay", headers={"Idempotency-Key": "k-1"})
        assert (got.status_code, got.get_json()["code"]) == (503, "store_unavailable")
        assert day.ledger == []
    finally:
        day.server.start()
    answers = [client.post("/pay", headers={"Idempotency-Key": "k-1"}) for _ in range(2)]
    assert [(got.status_code, got.data) for got in answers] == [(200, b"paid")] * 2
    assert day.ledger == ["k-1"]


@pytest.mark.parametrize("how", ENDINGS, ids=["shut down", "crashed"])
def test_down_between_claim_and_outcome_loses_neither_effect_nor_answer(day: Day, how: signal.Signals) -> None:
    """DEG-01: the caller gets its answer, the record follows when the server is back, and retries replay it."""
    assert day.pay(on_effect=lambda: day.server.stop(how)) == "paid 1"
    try:
        assert day.names() == ["RecordingFailed"]
        with pytest.raises(StoreUnavailable):
            day.pay()
    finally:
        day.server.start()
    with pytest.raises(InProgress):  # for as long as nobody knows more than the claim
        day.pay()
    day.later(11)
    assert day.pay() == "replay paid 1"
    assert day.ledger == ["k-1"]
    assert "RecordingRecovered" in day.names()


def test_down_for_longer_than_the_lease_still_ends_in_a_replay(day: Day) -> None:
    """LEA-05: whoever would take the claim over in this process finds the outcome that waits to be recorded."""
    assert day.pay(on_effect=day.server.stop) == "paid 1"
    day.server.start()
    day.execute(f"UPDATE {day.table} SET lease_until = 1")  # noqa: S608 - our own name
    assert day.pay() == "replay paid 1"
    assert day.ledger == ["k-1"]


@pytest.mark.parametrize("how", ENDINGS, ids=["in good order", "crashed"])
def test_restarted_in_mid_run_costs_nobody_anything(day: Day, how: signal.Signals) -> None:
    """DEG-01: the connections that died are replaced before a caller sees an error; every key runs once."""
    keys = [f"k-{number}" for number in range(6)]
    answers = [day.pay(key, on_effect=lambda: day.server.restart(how)) for key in keys]
    assert answers == [f"paid {number}" for number in range(1, 7)]
    assert [day.pay(key) for key in keys] == [f"replay {answer}" for answer in answers]
    assert day.ledger == keys
    assert day.names() == []
