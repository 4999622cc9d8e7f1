"""What users' own suites get: switches, a check of their functions, fixtures. Here against known culprits."""

from __future__ import annotations

import itertools
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import create_engine, text

from idemcore import (
    SINGLE_TENANT,
    Attempt,
    ConfigurationError,
    Engine,
    KeyMissing,
    MemoryStore,
    Policy,
    current_attempt,
    fingerprint,
)
from idemcore.testing import FakeClock, RanTwice, assert_idempotent, fresh, off, use_store
from idemcore_flask import Idempotency
from idemcore_function import idempotent, outcome

pytest_plugins = ["idemcore.testing.pytest_plugin"]


@pytest.fixture
def ledger() -> list[int]:
    return []


def test_off_runs_every_call_and_keeps_nothing(idem: Engine) -> None:
    """For tests that are about something else; what is wrong with a key is found all the same."""
    ran: list[object] = []

    @idempotent(idem, key="{n}")
    def f(n: object) -> int:
        ran.append(n)
        return current_attempt().number

    f(1)
    with off(idem):
        assert [f(1), f(1), f(2)] == [1, 1, 1]
        with pytest.raises(KeyMissing):
            f(None)
        attempt = idem.begin(scope=SINGLE_TENANT, operation="x", key="k", fingerprint=fingerprint(1))
        assert isinstance(attempt, Attempt)
        attempt.renew()
        attempt.release()
        assert idem.store.find(limit=9) == []
    f(1)
    assert ran == [1, 1, 1, 2]


def test_fresh_shows_a_test_nothing_of_the_others(idem: Engine) -> None:
    """And puts the former store back, also when the test fails."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        return n

    f(1)

    @fresh(idem)
    def test() -> None:
        assert not outcome(f)(1).replayed
        assert outcome(f)(1).replayed
        raise ZeroDivisionError

    before = idem.store
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            test()
    assert idem.store is before
    assert outcome(f)(1).replayed


def test_a_switch_is_a_decorator_too() -> None:
    """And gives an engine without a store one for as long."""
    idem = Engine()

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        return n

    @fresh(idem)
    def test() -> bool:
        return f(1) == f(1) == 1

    assert test()
    with pytest.raises(ConfigurationError):
        f(1)


def test_a_store_of_ones_own_may_stand_under_the_engine(idem: Engine) -> None:
    """Such as one on a clock that the test moves."""
    clock = FakeClock()

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        return n

    with use_store(idem, MemoryStore(clock=clock)):
        f(1)
        clock.advance(40 * 86_400)
        assert not outcome(f)(1).replayed


def test_a_function_that_happens_once_passes(idem: Engine, ledger: list[int]) -> None:
    """Under both policies; the engine's own store stays as it was."""
    for number, policy in enumerate([Policy(), Policy(on_abandoned="block")]):

        @idempotent(idem, key="{n}", policy=policy, namespace=f"n{number}")
        def f(n: int) -> int:
            ledger.append(n)
            return n

        assert_idempotent(lambda f=f: f(1), engine=idem, effects=lambda: len(ledger))  # type: ignore[misc]  # bound now
    assert idem.store.find(limit=1) == []


def test_a_key_that_is_another_in_each_call_is_found(idem: Engine, ledger: list[int]) -> None:
    """FUN-08: the classic: a uuid made inside the retry loop."""

    @idempotent(idem, key=lambda n: uuid.uuid4())
    def f(n: int) -> int:
        ledger.append(n)
        return n

    with pytest.raises(RanTwice, match=r"retry ran it again.*2 effects"):
        assert_idempotent(lambda: f(1), engine=idem, effects=lambda: len(ledger))


def test_an_effect_outside_of_the_protected_function_is_found(idem: Engine, ledger: list[int]) -> None:
    """What the caller does beside it is not protected."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        return n

    def call() -> None:
        f(1)
        ledger.append(1)

    with pytest.raises(RanTwice, match="retry ran it again"):
        assert_idempotent(call, engine=idem, effects=lambda: len(ledger))


def test_a_result_that_is_another_in_the_replay_is_found(idem: Engine, ledger: list[int]) -> None:
    """A codec that does not give back what it got."""

    class Upper:
        def encode(self, value: str) -> bytes:
            return value.encode()

        def decode(self, body: bytes) -> str:
            return body.decode().upper()

    @idempotent(idem, key="{n}", codec=Upper())
    def f(n: int) -> str:
        ledger.append(n)
        return "done"

    with pytest.raises(RanTwice, match="another result"):
        assert_idempotent(lambda: f(1), engine=idem, effects=lambda: len(ledger))


def test_an_attempt_number_that_changes_the_effect_is_found(idem: Engine, ledger: list[int]) -> None:
    """A function that does more in a takeover than in a first run."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        ledger.extend([n] * current_attempt().number)
        return n

    with pytest.raises(RanTwice, match="takeover"):
        assert_idempotent(lambda: f(1), engine=idem, effects=lambda: len(ledger))


def test_a_race_that_an_unprotected_call_loses_is_found(idem: Engine, ledger: list[int]) -> None:
    """Protected by itself, and called under another key when it is busy."""
    numbers = itertools.count()

    @idempotent(idem, key="{n}")
    def f(n: str) -> str:
        ledger.append(1)
        return "done"

    def call() -> str:
        name = threading.current_thread().name
        return f("k" if name == "MainThread" else f"{name}-{next(numbers)}")

    with pytest.raises(RanTwice, match="at once"):
        assert_idempotent(call, engine=idem, effects=lambda: len(ledger))


def test_what_cannot_be_told_is_said(idem: Engine, ledger: list[int]) -> None:
    """No effect counted, or no record left: then nothing was checked."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        return n

    def unprotected() -> None:
        ledger.append(1)

    for call, told in ((lambda: f(1), "no effect"), (unprotected, "no record")):
        with pytest.raises(RanTwice, match=told):
            assert_idempotent(call, engine=idem, effects=lambda: len(ledger))


def test_the_fixtures_of_the_plugin_share_a_clock(idemcore_engine: Engine, idemcore_clock: FakeClock) -> None:
    """An opt-in plugin: an engine with an empty store whose time a test moves."""

    @idempotent(idemcore_engine, key="{n}")
    def f(n: int) -> int:
        return n

    f(1)
    assert outcome(f)(1).replayed
    idemcore_clock.advance(31 * 86_400)
    assert not outcome(f)(1).replayed


def test_a_post_to_a_flask_view_is_proved_too() -> None:
    """Responses are compared by status and body."""
    idem = Engine("memory://")
    app = Flask("shop")
    idempotency = Idempotency(app, engine=idem, scope=SINGLE_TENANT)
    charged: list[int] = []

    @app.post("/payments")
    @idempotency.required
    def pay() -> tuple[dict[str, int], int]:
        charged.append(1)
        return {"charged": 10}, 201

    def post() -> object:
        return app.test_client().post("/payments", headers={"Idempotency-Key": "k"}, json={"amount": 10})

    assert_idempotent(post, engine=idem, effects=lambda: len(charged))


@pytest.mark.parametrize("testing", [False, True])
def test_a_view_that_breaks_is_told_with_its_cause(testing: bool) -> None:
    """A 5xx runs again by right, so it is no finding; what was raised is lost in the client's response."""
    idem = Engine("memory://", observers=())
    app = Flask("shop")
    app.testing = testing
    idempotency = Idempotency(app, engine=idem, scope=SINGLE_TENANT)
    charged: list[int] = []

    @app.post("/payments")
    @idempotency.required
    def pay() -> str:
        charged.append(1)
        raise ZeroDivisionError("no such rate")

    def post() -> object:
        return app.test_client().post("/payments", headers={"Idempotency-Key": "k"})

    with pytest.raises((RanTwice, ZeroDivisionError), match="no such rate") as caught:
        assert_idempotent(post, engine=idem, effects=lambda: len(charged))
    assert testing or (
        "answered 500, for ZeroDivisionError" in str(caught.value)
        and isinstance(caught.value.__cause__, ZeroDivisionError)
    )


def test_an_answer_of_500_without_a_cause_is_told_too() -> None:
    """A view that answers so by itself."""
    idem = Engine("memory://", observers=())
    app = Flask("shop")
    idempotency = Idempotency(app, engine=idem, scope=SINGLE_TENANT)
    charged: list[int] = []

    @app.post("/payments")
    @idempotency.required
    def pay() -> tuple[str, int]:
        charged.append(1)
        return "", 502

    def post() -> object:
        return app.test_client().post("/payments", headers={"Idempotency-Key": "k"})

    with pytest.raises(RanTwice, match="answered 502; give one that succeeds"):
        assert_idempotent(post, engine=idem, effects=lambda: len(charged))


@pytest.mark.parametrize("on_abandoned", ["rerun", "block"])
def test_a_view_that_joins_is_proved_in_a_store_on_its_database(tmp_path: Path, on_abandoned: Any) -> None:
    """In memory there is nothing to join, and that is told; the store is empty again afterwards."""
    url = f"sqlite:///{tmp_path}/shop.db"
    database = create_engine(url)
    idem, app = Engine(url, observers=()), Flask("shop")
    idem.create_schema()
    idempotency = Idempotency(app, engine=idem, scope=SINGLE_TENANT, on_abandoned=on_abandoned)
    with database.begin() as setting_up:
        setting_up.execute(text("CREATE TABLE orders (article TEXT)"))

    @app.post("/orders")
    @idempotency.required
    def order() -> tuple[str, int]:
        with database.begin() as transaction:
            current_attempt().join(transaction)
            transaction.execute(text("INSERT INTO orders VALUES ('tea')"))
        return "ordered", 201

    def post() -> object:
        return app.test_client().post("/orders", headers={"Idempotency-Key": "k"})

    def orders() -> int:
        with database.connect() as reading:
            return int(reading.execute(text("SELECT count(*) FROM orders")).scalar_one())

    with pytest.raises(RanTwice, match=r"500, for ConfigurationError.*SQLAlchemyStore"):
        assert_idempotent(post, engine=idem, effects=orders)
    assert orders() == 0
    assert_idempotent(post, engine=idem, effects=orders, store=idem.store)
    assert orders() >= 3
    assert idem.store.find(limit=1) == []
    post()
    with pytest.raises(ConfigurationError, match="give it an empty one"):
        assert_idempotent(post, engine=idem, effects=orders, store=idem.store)
    assert len(idem.store.find(limit=2)) == 1
    idem.close()
    database.dispose()
