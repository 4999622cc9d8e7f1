"""Pydantic models are read by the values that they hold, never through their dumps."""

from __future__ import annotations

import enum
import subprocess
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import (
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    create_model,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypeAliasType

from idemcore.canonical import NOT_FINGERPRINTED, canonicalize, fingerprint
from idemcore.errors import CanonicalizationError


class Kind(enum.Enum):
    CARD = "card"
    CASH = "cash"


class Payment(BaseModel):
    id: uuid.UUID
    day: date
    at: datetime
    amount: Decimal
    kind: Kind


class Base(BaseModel):
    name: str


class Extended(Base):
    amount: int


class Order(BaseModel):
    trace: uuid.UUID = Field(default_factory=uuid.uuid4)
    lines: list[int] = []
    party: Base | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    note: str = "none"


class Login(BaseModel):
    user: str
    password: SecretStr


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    size: int = Field(alias="s", default=0)


class Stamped(BaseModel):
    amount: int
    sent_at: Annotated[datetime, NOT_FINGERPRINTED]
    hidden: int = Field(default=0, exclude=True)


@dataclass
class StampedLine:
    amount: int
    sent_at: Annotated[float, NOT_FINGERPRINTED] = 0.0


class Charge(BaseModel):
    type: Literal["charge"] = "charge"
    amount: int


class Refund(BaseModel):
    type: Literal["refund"] = "refund"
    amount: int


T = TypeVar("T")
Cash = TypeAliasType("Cash", Literal[Kind.CASH])


class Page(BaseModel, Generic[T]):
    items: list[T]


class Numbers(RootModel[list[float]]):
    pass


@pydantic_dataclass
class Checked:
    secret: SecretStr
    n: int = 1


def payment(**changes: Any) -> Payment:
    values: dict[str, Any] = {
        "id": "12345678-1234-5678-1234-567812345678",
        "day": "2024-01-02",
        "at": "2024-01-02T04:00:00+01:00",
        "amount": "10.00",
        "kind": "card",
    }
    return Payment(**(values | changes))


def test_a_model_has_the_expected_form() -> None:
    """CAN-08: UUID, date, datetime, Decimal and Enum fields are written by what they hold."""
    expected = (
        b'{"amount":10,"at":"2024-01-02T03:00:00Z","day":"2024-01-02",'
        b'"id":"12345678-1234-5678-1234-567812345678","kind":"card"}'
    )
    assert canonicalize(payment()) == expected


@pytest.mark.parametrize(
    "changes", [{"amount": "10.01"}, {"day": "2024-01-03"}, {"at": "2024-01-02T04:00:00Z"}], ids=str
)
def test_equal_models_are_one_request_and_a_changed_field_is_another(changes: dict[str, str]) -> None:
    """CAN-08: two equal instances meet; a changed Decimal, date or instant does not."""
    assert fingerprint(payment()) == fingerprint(payment(amount="10.0", at=datetime(2024, 1, 2, 3, tzinfo=UTC)))
    assert fingerprint(payment()) != fingerprint(payment(**changes))


def test_two_passwords_are_two_requests() -> None:
    """A dump prints every secret as one mask; here its digest enters, and neither mask nor secret."""
    one, other = (Login(user="u", password=SecretStr(password)) for password in ("hunter2", "hunter3"))
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(Login(user="u", password=SecretStr("hunter2")))
    assert b"*" not in canonicalize(one)
    assert b"hunter2" not in canonicalize(one)


def test_every_kind_of_secret_counts_by_its_content() -> None:
    """SecretStr, SecretBytes and Secret differ by content and type, and from what is no secret."""
    values: list[object] = [
        SecretStr("a"),
        SecretStr("b"),
        SecretBytes(b"a"),
        Secret[int](1),
        Secret[int](2),
        "a",
        "**********",
        1,
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(Secret[Decimal](Decimal("1.0"))) == fingerprint(Secret[int](1))


def test_fields_of_a_subclass_count_where_the_base_is_declared() -> None:
    """A dump by declared types loses what a subclass adds: two amounts would be one request."""
    small, large = (Order(party=Extended(name="n", amount=amount)) for amount in (1, 9000))
    assert canonicalize(small) == b'{"party":{"amount":1,"name":"n"}}'
    assert fingerprint(small) != fingerprint(large)


def test_unset_fields_are_left_out() -> None:
    """A default made by a factory differs in each retry; the request did not say it, so it does not count."""
    assert Order().trace != Order().trace
    assert fingerprint(Order()) == fingerprint(Order())
    assert canonicalize(Order()) == b"{}"
    assert canonicalize(Order(note="none")) == b'{"note":"none"}'
    assert canonicalize(Order.model_validate({"party": None})) == b'{"party":null}'


def test_the_tag_of_a_union_counts_set_or_not() -> None:
    """Charge and refund hold the same fields but for a tag that nobody sets; a client may send it, or not."""
    assert canonicalize(Refund(amount=1)) == b'{"amount":1,"type":"refund"}'
    assert fingerprint(Refund(amount=1)) != fingerprint(Charge(amount=1))
    assert fingerprint(Refund(amount=1)) == fingerprint(Refund(type="refund", amount=1))


@pytest.mark.parametrize(
    ("annotation", "default", "written"),
    [
        (Annotated[Literal["a"], "note"], "a", b'{"tag":"a"}'),
        (Annotated[Annotated[Literal["a"], 1] | None, 2], "a", b'{"tag":"a"}'),
        (Literal["a"] | Annotated[Literal["b"], 1], "b", b'{"tag":"b"}'),
        (Literal[Kind.CARD], Kind.CARD, b'{"tag":"card"}'),
        (Cash, Kind.CASH, b'{"tag":"cash"}'),
        (Literal["a", "b"], "b", b'{"tag":"b"}'),
        (Literal["a"], Field(default_factory=lambda: "a"), b'{"tag":"a"}'),
        (Annotated[Literal["a"], NOT_FINGERPRINTED], "a", b"{}"),
        (Literal["a", "b"], Field(default_factory=lambda: "b"), b"{}"),
        (Literal["a"] | None, None, b"{}"),
        (Literal["a"] | int, "a", b"{}"),
        (Kind, Kind.CARD, b"{}"),
        (str, "a", b"{}"),
    ],
    ids=str,
)
def test_what_is_a_tag(annotation: Any, default: object, written: bytes) -> None:
    """A Literal, however it is spelled; not what may be any text, what a factory chooses, or nothing at all."""
    tagged = create_model("Tagged", tag=(annotation, default))
    assert canonicalize(tagged()) == written


def test_the_tag_of_a_dataclass_counts_like_all_its_fields() -> None:
    """A dataclass, pydantic's too, does not know which of its fields were set: all are written."""

    @dataclass
    class Paid:
        type: Literal["paid"] = "paid"

    @pydantic_dataclass
    class Owed:
        type: Literal["owed"] = "owed"

    assert canonicalize([Paid(), Owed()]) == b'[{"type":"paid"},{"type":"owed"}]'


def test_a_default_changed_in_place_counts() -> None:
    """Pydantic does not note an append to a default; two amounts must not meet all the same."""
    static, factory = Order(), Order()
    static.lines.append(9000)
    factory.labels["a"] = "b"
    assert canonicalize(static) == b'{"lines":[9000]}'
    assert canonicalize(factory) == b'{"labels":{"a":"b"}}'


def test_an_assigned_field_counts() -> None:
    """What was assigned after construction is set."""
    order = Order()
    order.note = "none"
    assert canonicalize(order) == b'{"note":"none"}'


def test_extra_members_count() -> None:
    """extra="allow" keeps what the model does not declare; it is part of the request."""
    assert canonicalize(Open.model_validate({"s": 1, "colour": "red"})) == b'{"colour":"red","size":1}'
    with pytest.raises(CanonicalizationError, match="size"):
        canonicalize(Open.model_validate({"s": 1, "size": 2}))


def test_only_our_annotation_leaves_a_field_out() -> None:
    """Field(exclude=True) is about dumps; a field is no part of the request only when that is said."""
    now, later = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    assert canonicalize(Stamped(amount=1, sent_at=now, hidden=2)) == b'{"amount":1,"hidden":2}'
    assert fingerprint(Stamped(amount=1, sent_at=now)) == fingerprint(Stamped(amount=1, sent_at=later))
    assert fingerprint(Stamped(amount=1, sent_at=now, hidden=2)) != fingerprint(
        Stamped(amount=1, sent_at=now, hidden=3)
    )


def test_our_annotation_works_on_dataclasses_too() -> None:
    """Annotations that are strings, as in this file, are resolved."""
    assert canonicalize(StampedLine(1, 2.0)) == b'{"amount":1}'


def test_an_annotation_that_cannot_be_resolved_is_refused() -> None:
    """Else a field that was to be left out would count, without a word."""

    @dataclass
    class Lost:
        amount: int
        sent: Annotated[Missing, NOT_FINGERPRINTED] = None  # type: ignore[name-defined]  # noqa: F821  # the case

    with pytest.raises(CanonicalizationError, match="Lost"):
        canonicalize(Lost(1))


def test_roots_generics_urls_and_dataclasses_of_pydantic() -> None:
    """What pydantic adds to types is read by what it holds."""
    assert canonicalize(Numbers([1.0, 2.5])) == b"[1,2.5]"
    assert canonicalize(Page[Base](items=[Base(name="a")])) == b'{"items":[{"name":"a"}]}'
    assert canonicalize([AnyUrl("https://example.com/a?b=c")]) == b'["https://example.com/a?b=c"]'
    assert canonicalize(Checked(SecretStr("x"))) != canonicalize(Checked(SecretStr("y")))


def test_nan_in_a_model_is_refused_not_null() -> None:
    """A dump turns nan, inf and None into one null."""
    with pytest.raises(CanonicalizationError, match=r"\$\[1\]: nan"):
        canonicalize(Numbers.model_construct(root=[1.0, float("nan")]))


def test_the_model_is_left_as_it_was() -> None:
    """Reading a model sets nothing on it."""
    order = Order(party=Extended(name="n", amount=1), lines=[1, 2])
    before = (order.model_copy(deep=True), set(order.model_fields_set), dict(order.__dict__))
    canonicalize(order, exclude=["/party/amount", "/lines/0"])
    assert (order, order.model_fields_set, order.__dict__) == before


def test_pydantic_is_not_loaded_for_those_who_do_not_use_it() -> None:
    """A value can only be a model when somebody loaded pydantic: the import stays light."""
    code = (
        "import sys, idemcore.canonical as c\n"
        "c.fingerprint({'a': [1, 2.5, b'x']}); c.fingerprint_json(b'{}')\n"
        "try: c.fingerprint(object())\n"
        "except Exception: pass\n"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
