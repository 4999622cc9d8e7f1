"""A namespace is one function's: two under one name would share their records."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from idemcore import ConfigurationError, Engine
from idemcore_function import idempotent

NAME = "billing.charge"


def charge(invoice: str) -> str:
    return f"charged {invoice}"


def refund(invoice: str) -> str:
    return f"refunded {invoice}"


class Mailer:
    def __call__(self, invoice: str) -> str:
        return f"mailed {invoice}"


def named(idem: Engine, function: Callable[..., Any]) -> Callable[..., Any]:
    return idempotent(idem, key="{invoice}", namespace=NAME)(function)


def written_elsewhere(*, module: str | None = None, file: str | None = None) -> FunctionType:
    """`charge`, as another import or a notebook's cell makes it."""
    code = charge.__code__ if file is None else charge.__code__.replace(co_filename=file)
    made = FunctionType(code, charge.__globals__, "charge")
    made.__module__ = module or charge.__module__
    made.__annotations__ = charge.__annotations__
    return made


@pytest.mark.parametrize(
    "other",
    [refund, functools.partial(refund), Mailer(), written_elsewhere(module="m", file="m.py")],
    ids=["function", "partial", "object", "same name elsewhere"],
)
def test_another_function_under_a_name_that_is_taken_is_refused(
    idem: Engine, other: Callable[..., Any]
) -> None:
    """A decorator that was copied: a refund would give back the receipt of the charge, and refund nothing."""
    protected = named(idem, charge)
    with pytest.raises(ConfigurationError, match=r"test_names:charge has the namespace 'billing\.charge'"):
        named(idem, other)
    assert protected("i-1") == "charged i-1"


@pytest.mark.parametrize(
    "again",
    [
        charge,
        functools.partial(charge),
        written_elsewhere(file="cell-12.py"),
        written_elsewhere(module="project.billing"),
    ],
    ids=["itself", "a partial of it", "a notebook's cell", "imported under two names"],
)
def test_the_same_function_made_anew_keeps_its_name(idem: Engine, again: Callable[..., Any]) -> None:
    """A reload, a cell that is run again, other options in a test."""
    named(idem, charge)("i-1")
    assert named(idem, again)("i-1") == "charged i-1"


def test_each_engine_has_names_of_its_own(idem: Engine) -> None:
    """Two stores share nothing."""
    named(idem, charge)
    with Engine("memory://") as other:
        assert named(other, refund)("i-1") == "refunded i-1"


def test_functions_of_tests_and_factories_may_take_turns(idem: Engine) -> None:
    """Of a function inside of another one nobody can tell whether the one before it still is."""

    def stub(invoice: str) -> str:
        return f"stub {invoice}"

    for function in (charge, stub, lambda invoice: f"other {invoice}"):
        named(idem, function)
