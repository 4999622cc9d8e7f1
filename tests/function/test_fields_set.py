"""Models come back with the fields set that they had, wherever they lie in a result."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
import uuid
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from idemcore import Engine, RecordUnreadable
from idemcore.codec import TypeCodec
from idemcore.fields_set import differences
from idemcore.same import same
from idemcore_function import ALL_ARGUMENTS, idempotent


class Point(NamedTuple):
    x: int
    y: Decimal


class Fee(BaseModel):
    currency: str = "EUR"
    cents: int = 0


class Made(BaseModel):
    id: UUID = Field(default_factory=uuid.uuid4)
    kind: Literal["made"] = "made"
    fee: Fee = Fee()
    more: dict[str, list[Fee]] = {}


class Lax(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)
    note: str | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Fee]


class Rate(BaseModel, frozen=True):
    currency: str = "EUR"
    cents: int = 0
    names: frozenset[str] = frozenset("xyz")


class Nest(BaseModel, frozen=True):
    rates: frozenset[Rate] = frozenset({Rate(cents=9)})


@dataclasses.dataclass
class Holder:
    fees: tuple[Fee, Fee]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Fee, Fee()),
        (Fee, Fee(cents=3)),
        (Fee | None, Fee(currency="EUR")),
        (Made, Made()),
        (Made, Made(fee=Fee(cents=1), more={"a": [Fee(), Fee(cents=2)], "b": [Fee()]})),
        (list[Made], [Made(), Made(kind="made")]),
        (Holder, Holder((Fee(), Fee(cents=0)))),
        (dict[str, Point | Fee], {"a": Fee()}),
        (RootModel[Fee], RootModel[Fee](Fee())),
        (Lax, Lax(other=1)),  # type: ignore[call-arg]
        (Fee, Fee.model_construct({"currency"}, cents=5)),
        (Open, Open(other=Fee())),  # type: ignore[call-arg]
        (set[Rate], {Rate(cents=1), Rate(cents=2, names=frozenset("ab")), Rate(currency="USD", cents=3)}),
        (frozenset[tuple[Rate, int]], frozenset({(Rate(), 1), (Rate(currency="EUR"), 2)})),
        (list[set[Nest]], [{Nest(), Nest(rates=frozenset({Rate(), Rate(cents=1)}))}, set()]),
    ],
)
def test_a_replayed_model_has_the_fields_set_that_the_first_had(
    idem: Engine, declared: Any, value: Any
) -> None:
    """At every depth: a call that is keyed by what it is given takes the replayed result for the first one."""
    codec = TypeCodec(declared)
    back = codec.decode(codec.encode(value))
    assert same(value, back)
    ran = []

    def first(n: int) -> Any:
        return value

    first.__annotations__["return"] = declared

    @idempotent(idem, key=ALL_ARGUMENTS)
    def chained(given: Any) -> None:
        ran.append(given)

    made = idempotent(idem, key="{n}", namespace="first")(first)
    chained(made(1))
    chained(made(1))
    assert len(ran) == 1


def test_the_models_of_a_deque_have_their_fields_set() -> None:
    """It is a sequence like a list."""
    codec = TypeCodec(deque[Fee])
    value = deque([Fee(), Fee(cents=0)])
    assert same(value, codec.decode(codec.encode(value)))


def test_a_set_of_models_is_read_in_another_process() -> None:
    """The members of a set come in another order there, and so do those of a member's own."""
    program = """
        import sys
        from idemcore.codec import TypeCodec
        from tests.function.test_fields_set import Rate, told

        print(told(TypeCodec(set[Rate]).decode(sys.stdin.buffer.read())))
    """
    rates = {Rate(), *(Rate(cents=n, names=frozenset("abcd")) for n in range(9))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        input=TypeCodec(set[Rate]).encode(rates),
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "8785"},
        check=True,
    )
    assert done.stdout.decode().splitlines() == told(rates).splitlines()
    assert told(rates).startswith("abcd 0 cents,names\nabcd 1 cents,names\n")


def told(rates: set[Rate]) -> str:
    """What each of them says and which of its fields are set, in order."""
    lines = [
        f"{''.join(sorted(rate.names))} {rate.cents} {','.join(sorted(rate.model_fields_set))}"
        for rate in rates
    ]
    return "\n".join(sorted(lines))


def test_members_of_a_set_that_cannot_be_told_apart_have_no_fields_set() -> None:
    """Two classes, one text: which of them has which would be a guess."""

    class Other(Rate):
        pass

    with pytest.raises(ValueError, match="say the same"):
        list(differences({Rate(), Other()}, {Rate(cents=0), Other()}))


def test_a_set_whose_models_have_changed_is_an_unreadable_record() -> None:
    """A new field has a value that the record does not know: no member says what a recorded one said."""

    class Before(BaseModel, frozen=True):
        cents: int = 0

    class After(Before):
        currency: str = "EUR"

    kept = TypeCodec(set[Before]).encode({Before(), Before(cents=1)})
    with pytest.raises(RecordUnreadable, match="changed since"):
        TypeCodec(set[After]).decode(kept)


def test_same_models_have_the_same_fields_set() -> None:
    """What is set is part of what a model says."""
    assert not same(Fee(), Fee(cents=0))
    assert not same([{"a": Fee()}], [{"a": Fee(cents=0)}])
    assert same(Fee(cents=0), Fee(cents=0))


def test_a_replayed_model_keeps_its_values_when_a_default_has_changed() -> None:
    """An unset field is written too: 5 euros stay euros after the default has become another."""

    class Before(BaseModel):
        currency: str = "EUR"
        fee: Fee = Fee()

    class After(BaseModel):
        currency: str = "USD"
        added: int = 0

    back = TypeCodec(After).decode(TypeCodec(Before).encode(Before()))
    assert (back.currency, back.model_fields_set) == ("EUR", set())


def test_a_model_recorded_without_its_fields_set_is_still_read() -> None:
    """Records of before: every field that was written counts as set."""
    back = TypeCodec(Fee).decode(b'{"currency":"EUR","cents":0}')
    assert back == Fee()
    assert back.model_fields_set == {"currency", "cents"}


@pytest.mark.parametrize("body", [b"~", b"~[]", b"~[1]\n{}", b'~[[["x"]]]\n{}', b"~{\n{}", b"~[[[],[[]]]]\n{}"])
def test_a_damaged_account_of_fields_set_is_an_unreadable_record(body: bytes) -> None:
    """It is no answer that may be given."""
    with pytest.raises(RecordUnreadable):
        TypeCodec(Fee).decode(body)
