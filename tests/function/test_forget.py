"""An operator forgets a call: its key is free whatever its record says, unless a run is under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from idemcore import (
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    NotReplayable,
    OutcomeUnknown,
    Policy,
    ResultNotSerializable,
)
from idemcore_function import forget, idempotent, outcome, resolve
from tests.core.engine_fixtures import Bench


@pytest.fixture(params=["memory", "sqlite"])
def idem(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with Engine("memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'forget.db'}") as engine:
        engine.create_schema()
        yield engine


def test_a_finished_call_is_forgotten_and_runs_again(idem: Engine) -> None:
    """The record goes; that of another call stays."""

    @idempotent(idem, key="{n}")
    def f(n: int, amount: int) -> int:
        return amount

    f(1, 10)
    f(2, 10)
    assert forget(f)(1, 10)
    assert f(1, 99) == 99
    assert outcome(f)(2, 10).replayed


def test_forgetting_what_is_not_there_is_done(idem: Engine) -> None:
    """So it may be said twice."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        return n

    assert forget(f)(1)
    f(1)
    assert [forget(f)(1), forget(f)(1)] == [True, True]


def test_a_tombstone_and_an_unknown_outcome_are_forgotten(idem: Engine) -> None:
    """What an operator has looked up elsewhere need not stand in the way."""
    raised: list[Exception] = [TimeoutError()]

    @idempotent(idem, key="{n}", unknown=(TimeoutError,))
    def f(n):  # type: ignore[no-untyped-def]
        if raised:
            raise raised.pop()
        return object()

    with pytest.raises(TimeoutError):
        f(1)
    with pytest.raises(OutcomeUnknown):
        f(1)
    assert forget(f)(1)
    first = f(1)
    with pytest.raises(NotReplayable):
        f(1)
    assert forget(f)(1)
    assert f(1) is not first


def test_a_run_under_way_is_not_forgotten(idem: Engine) -> None:
    """Else a second one could start beside it."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> bool:
        return forget(f)(n)

    assert f(1) is False
    assert outcome(f)(1).replayed


def test_forgetting_names_the_same_record_as_calling(bench: Bench) -> None:
    """With a key that is taken together with its content, as a method, and through `partial`."""

    class Account:
        id = "a"

        @idempotent(bench.idem, key="{self.id}", policy=Policy(identity="key+content"))
        def pay(self, n: int) -> int:
            return n

    Account().pay(1)
    Account().pay(2)
    assert forget(Account().pay)(1)
    assert not outcome(Account().pay)(1).replayed
    assert outcome(Account().pay)(2).replayed


def test_only_a_decorated_function_can_forget() -> None:
    """As with the other questions."""
    with pytest.raises(ConfigurationError):
        forget(len)


def test_an_operator_says_what_a_call_returned(idem: Engine) -> None:
    """OUT-03: kept by the function's own codec, so a retry can read it; and only where something is open."""

    @idempotent(idem, key="{n}", unknown=(TimeoutError,))
    def f(n: int) -> tuple[str, int]:
        raise TimeoutError

    assert not resolve(f, "returned", ("R-1", 1))(1)  # nothing is known of it
    for n in (1, 2, 3):
        with pytest.raises(TimeoutError):
            f(n)
    assert resolve(f, "returned", ("R-1", 1))(1)
    assert f(1) == ("R-1", 1)
    assert not resolve(f, "not_done")(1)
    assert resolve(f, "done")(2)
    with pytest.raises(NotReplayable):
        f(2)
    assert resolve(f, "not_done")(3)
    with pytest.raises(TimeoutError):
        f(3)
    for verdict in (("returned",), ("done", 1), ("maybe",)):
        with pytest.raises(ConfigurationError, match="verdict"):
            resolve(f, *verdict)  # type: ignore[call-overload]


def test_a_verdict_is_on_the_call_that_is_asked_for(idem: Engine) -> None:
    """KEY-05: the key alone is not the call; another amount under it was never in doubt."""

    @idempotent(idem, key="{n}", unknown=(TimeoutError,))
    def pay(n: int, amount: int) -> str:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        pay(1, 10)
    with pytest.raises(FingerprintMismatch):
        resolve(pay, "done")(1, 99)
    assert resolve(pay, "done")(1, 10)


@pytest.mark.parametrize("value", ["R-1", None, ["R-1", 1], 7])
def test_an_operator_gives_what_the_function_declares(idem: Engine, value: object) -> None:
    """OUT-03: a function may break its own promise and is believed; a verdict that does is a slip."""

    @idempotent(idem, key="{n}", unknown=(TimeoutError,))
    def f(n: int) -> tuple[str, int]:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        f(1)
    with pytest.raises(ResultNotSerializable, match="declares another result"):
        resolve(f, "returned", value)(1)  # type: ignore[arg-type] # the slip
    assert resolve(f, "returned", ("R-1", 1))(1)
