"""A union of classes that only their names tell apart is refused: names are no part of a fingerprint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from idemcore import ALL_ARGUMENTS, ConfigurationError, Engine
from idemcore_function import idempotent


@dataclass(frozen=True)
class Debit:
    account: str
    amount: int


@dataclass(frozen=True)
class Credit:
    account: str
    amount: int


@dataclass
class Start:
    pass


@dataclass
class Stop:
    pass


class Sent(BaseModel):
    id: str
    step: Literal["post"] = "post"


class Returned(BaseModel):
    id: str
    step: Literal["post"] = "post"


@dataclass(frozen=True)
class Charge:
    account: str
    amount: int
    kind: Literal["charge"] = "charge"


@dataclass(frozen=True)
class Refund:
    account: str
    amount: int
    kind: Literal["refund"] = "refund"


class Kind(Enum):
    IN = 1
    OUT = 2


@dataclass(frozen=True)
class Received:
    kind: Kind
    amount: int


@dataclass(frozen=True)
class Issued:
    kind: Kind
    amount: int


@dataclass(frozen=True)
class Fee:
    account: str
    amount: int
    reason: str


def taking(annotation: Any) -> Callable[[Any], str]:
    def book(entry: Any) -> str:
        return type(entry).__name__

    book.__annotations__["entry"] = annotation
    book.__annotations__["return"] = str
    return book


@pytest.mark.parametrize(
    "annotation",
    [
        Debit | Credit,
        Debit | Credit | None,
        list[Debit | Credit],
        Annotated[Fee | Credit | Debit, 1],
        Sent | Returned,
        Start | Stop,
    ],
    ids=str,
)
def test_a_union_of_which_nothing_says_which_is_refused(idem: Engine, annotation: Any) -> None:
    """A credit under the fingerprint of the debit would be given its receipt, and never be booked."""
    with pytest.raises(ConfigurationError, match=r"'entry' of .*Literal"):
        idempotent(idem, key=ALL_ARGUMENTS)(taking(annotation))


@pytest.mark.parametrize(
    "annotation",
    [Charge | Refund, Received | Issued, Debit | Fee, Debit | None, Literal["a", "b"], Debit],
    ids=str,
)
def test_one_that_says_which_it_is_is_taken(idem: Engine, annotation: Any) -> None:
    """By a tag, by a value that may be one, by other fields."""
    idempotent(idem, key=ALL_ARGUMENTS)(taking(annotation))


def test_a_tag_makes_two_requests(idem: Engine) -> None:
    """As the refusal says."""
    book = idempotent(idem, key=ALL_ARGUMENTS)(taking(Charge | Refund))
    assert (book(Charge("a", 1)), book(Refund("a", 1))) == ("Charge", "Refund")


def test_a_key_may_say_which_it_is(idem: Engine) -> None:
    """A callable sees the class."""
    book = idempotent(idem, key=lambda entry: f"{type(entry).__name__}-{entry.account}")(taking(Debit | Credit))
    assert (book(Debit("a", 1)), book(Credit("a", 1))) == ("Debit", "Credit")


def test_what_is_not_compared_may_be_anything(idem: Engine) -> None:
    """It tells no two requests apart, whatever it is."""

    def book(n: int, entry: Debit | Credit) -> int:
        return n

    assert idempotent(idem, key="{n}", exclude=["entry"])(book)(1, Debit("a", 1)) == 1
