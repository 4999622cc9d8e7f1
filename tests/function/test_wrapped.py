"""Above another decorator a call is read by the names behind it, and refused where that may be another call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from idemcore import ALL_ARGUMENTS, ConfigurationError, Engine, FingerprintMismatch
from idemcore_function import idempotent, key_of, outcome

paid: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    paid.clear()


def passing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that adds nothing, such as one that logs."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


def passing_method(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return inner


def with_db(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives the function its first argument."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function("DB", *args, **kwargs)

    return inner


def with_db_by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(invoice: str, amount: int = 0) -> Any:
        return function("DB", invoice, amount)

    return inner


def pay(db: str, invoice: str, amount: int = 0) -> str:
    paid.append((db, invoice, amount))
    return f"paid {invoice} {amount}"


def place(order: str, session: object, amount: int = 0) -> str:
    paid.append((order, amount))
    return f"placed {order}"


@pytest.mark.parametrize("exclude", [["db"], ["db", "amount"], ["/*"]], ids=str)
def test_an_argument_that_a_decorator_adds_moves_no_other_out_of_the_comparison(
    idem: Engine, exclude: list[str]
) -> None:
    """The invoice stood for the excluded `db` and the amount for the key: the next invoice was never paid."""
    charge = idempotent(idem, key="{invoice}", exclude=exclude)(with_db(pay))
    with pytest.raises(ConfigurationError, match=r"'db' is left out .* write @idempotent below it"):
        charge("i-1", 50)
    with pytest.raises(TypeError, match=r"'db'.*write @idempotent below it"):
        charge(invoice="i-1", amount=50)
    assert (paid, idem.store.find(limit=1)) == ([], [])


def test_below_that_decorator_it_is_one_call_for_each_invoice(idem: Engine) -> None:
    """As the refusal says."""
    charge = with_db(idempotent(idem, key="{invoice}", exclude=["db"])(pay))
    assert [charge("i-1", 50), charge("i-2", 50), charge("i-1", 50)] == [
        "paid i-1 50",
        "paid i-2 50",
        "paid i-1 50",
    ]
    assert paid == [("DB", "i-1", 50), ("DB", "i-2", 50)]


def test_what_is_compared_may_move_and_is_compared_all_the_same(idem: Engine) -> None:
    """Nothing is left out, so another call is never taken for a retry."""
    charge = idempotent(idem, key="{invoice}", namespace="by key")(with_db(pay))
    assert charge("i-1", 50) == "paid i-1 50"
    with pytest.raises(FingerprintMismatch):
        charge("i-2", 50)
    book = idempotent(idem, key=ALL_ARGUMENTS, namespace="all")(with_db(pay))
    assert [book("i-1", 50), book("i-2", 50), book("i-1", 50)] == ["paid i-1 50", "paid i-2 50", "paid i-1 50"]


def test_a_decorator_that_names_its_arguments_is_called_by_them(idem: Engine) -> None:
    """What the function behind it takes is not asked for."""
    charge = idempotent(idem, key="{invoice}")(with_db_by_name(pay))
    assert key_of(charge)("i-1", 50).key == "i-1"
    assert [charge("i-1", 50), charge("i-2", 50), charge("i-1", amount=50)] == [
        "paid i-1 50",
        "paid i-2 50",
        "paid i-1 50",
    ]
    assert len(paid) == 2
    with pytest.raises(ConfigurationError, match="db"):
        idempotent(idem, key="{invoice}", exclude=["db"])(with_db_by_name(pay))


@pytest.mark.parametrize(
    "wrapped",
    [passing(place), passing(passing(place)), functools.cache(place)],
    ids=["one", "two", "made in C"],
)
def test_a_decorator_that_adds_nothing_may_stand_below(idem: Engine, wrapped: Callable[..., Any]) -> None:
    """By position, keyword or default it is one call; what is left out is given by keyword."""
    protected = idempotent(idem, key="{order}", exclude=["session"])(wrapped)
    assert protected("o-1", session=object(), amount=0) == "placed o-1"
    assert outcome(protected)("o-1", session=object()).replayed
    assert outcome(protected)(order="o-1", session=object()).replayed
    with pytest.raises(ConfigurationError, match="give it by keyword"):
        protected("o-2", object())
    assert paid == [("o-1", 0)]


@pytest.mark.parametrize("below", [passing, passing_method])
def test_a_method_is_given_its_object_by_position(idem: Engine, below: Callable[..., Any]) -> None:
    """Python does that, so it is no argument that could have moved."""

    class Account:
        @idempotent(idem, key="{number}", exclude={"self"})
        @below
        def close(self, number: str) -> str:
            paid.append((number,))
            return f"closed {number}"

    assert [Account().close("a"), Account().close("a"), Account().close("b")] == [
        "closed a",
        "closed a",
        "closed b",
    ]
    assert paid == [("a",), ("b",)]


def test_without_a_decorator_in_between_places_are_what_they_are(idem: Engine) -> None:
    """Nor does a partial add what the function does not say."""
    protected = idempotent(idem, key="{order}", exclude=["session"], namespace="place")(place)
    assert protected("o-1", object()) == protected("o-1", object()) == "placed o-1"
    bound = functools.partial(place, amount=5)
    by_partial = idempotent(idem, key="{order}", exclude=["session"], namespace="bound")(bound)
    assert by_partial("o-1", object()) == by_partial("o-1", object()) == "placed o-1"
    assert paid == [("o-1", 0), ("o-1", 5)]
