"""Nothing that an object holds is left out unseen: it is written, or the object is refused."""

from __future__ import annotations

import enum
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.utils.datastructures import MultiValueDict
from pydantic import BaseModel, Field
from werkzeug.datastructures import CombinedMultiDict, ImmutableMultiDict, MultiDict

from idemcore.canonical import canonicalize
from idemcore.errors import CanonicalizationError


class Money(int):
    currency: str


class Tagged(list[int]):
    __slots__ = ("tag",)
    tag: str


class Attributes(dict[str, Any]):
    """Shows its members as attributes, as many do."""

    def __init__(self, **members: Any) -> None:
        super().__init__(**members)
        self.__dict__ = self


class Totals(dict[str, int]):
    @cached_property
    def total(self) -> int:
        return sum(self.values())


def with_attribute(value: Any, name: str = "currency") -> Any:
    setattr(value, name, "EUR")
    return value


def derived(base: type, *arguments: object) -> Any:
    return with_attribute(type("Derived", (base,), {})(*arguments))


@pytest.mark.parametrize(
    "value",
    [
        derived(int, 10),
        derived(str, "a"),
        derived(float, 1.5),
        derived(bytes, b"a"),
        derived(Decimal, "1.5"),
        derived(timedelta, 1),
        derived(list, [1]),
        derived(tuple, [1]),
        derived(dict, {"a": 1}),
        derived(set, [1]),
        derived(frozenset, [1]),
        derived(deque, [1]),
        with_attribute(OrderedDict(a=1)),
        with_attribute(Tagged([1]), "tag"),
    ],
    ids=lambda value: type(value).__mro__[1].__name__,
)
def test_an_attribute_beside_a_plain_value_is_refused(value: object) -> None:
    """Ten EUR and ten JPY are no one amount: an int, list or dict that holds more is no plain value."""
    with pytest.raises(CanonicalizationError, match=r"\$\[0\].*attribute '(currency|tag)'.*exclude"):
        canonicalize([value])


def test_what_only_shows_or_remembers_the_members_is_no_attribute() -> None:
    """Objects without attributes, cached properties, and dicts whose members are attributes too are plain."""
    totals = Totals(a=1)
    assert totals.total == 1
    values = [Money(10), Tagged([1]), Attributes(a=1), totals, OrderedDict(a=1)]
    assert canonicalize(values) == b'[10,[1],{"a":1},{"a":1},{"a":1}]'


class Sorted(dict[str, int]):
    def items(self) -> Any:
        return [(name, self[name]) for name in sorted(self)]


class Hiding(dict[str, int]):
    def items(self) -> Any:
        return []


class Lazy(list[int]):
    def __iter__(self) -> Iterator[int]:
        return iter([7])


def test_containers_that_read_otherwise_than_they_are_stored_are_refused() -> None:
    """Either of the two would hide the other."""
    assert canonicalize(Sorted(b=1, a=2)) == b'{"a":2,"b":1}' == canonicalize(Sorted(a=2, b=1))
    for value in (Hiding(a=1), Lazy(), Lazy([8])):
        with pytest.raises(CanonicalizationError, match="reads otherwise"):
            canonicalize(value)


class Proxy(UserDict[str, str]):
    """As multidict names what gives all values."""

    def getall(self, name: str) -> list[str]:
        return [self[name], "b"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: MultiDict([("sku", "a"), ("sku", "b")]),
        lambda: ImmutableMultiDict([("sku", "a")]),
        lambda: CombinedMultiDict([MultiDict([("sku", "a")]), MultiDict([("sku", "b")])]),
        lambda: httpx.QueryParams("sku=a&sku=b"),
        lambda: MultiValueDict({"sku": ["a", "b"]}),
        lambda: Proxy(sku="a"),
    ],
    ids=["MultiDict", "ImmutableMultiDict", "CombinedMultiDict", "QueryParams", "MultiValueDict", "getall"],
)
def test_a_mapping_of_several_values_is_refused_with_what_to_do(make: Callable[[], object]) -> None:
    """items() gives the first value of each name: two orders would be one."""
    with pytest.raises(CanonicalizationError, match=r"\$\.form: .*several values.*to_dict\(flat=False\)"):
        canonicalize({"form": make()})


def test_what_the_refusal_says_to_do_is_compared_whole() -> None:
    """All values of a form, in order."""
    form = MultiDict([("sku", "a"), ("sku", "b")])
    assert canonicalize(form.to_dict(flat=False)) == b'{"sku":["a","b"]}'
    assert canonicalize(UserDict(a=1)) == b'{"a":1}'


@dataclass
class Basket(list[int]):
    currency: str


@dataclass
class Prices(dict[str, int]):
    currency: str


@dataclass
class Amount(int):
    pass


@pytest.mark.parametrize(
    "value", [Basket("EUR"), Prices("EUR"), Amount()], ids=lambda value: type(value).__name__
)
def test_a_dataclass_that_is_a_plain_value_too_is_refused(value: object) -> None:
    """Its fields would be written, and its items not."""
    with pytest.raises(CanonicalizationError, match=r"has fields and is a (list|dict|int) as well"):
        canonicalize(value)


@dataclass
class Made:
    amount: int
    given: InitVar[str] = ""

    def __post_init__(self, given: str) -> None:
        if given:
            self.kept = given

    @cached_property
    def double(self) -> int:
        return 2 * self.amount


class Whole:
    """A field of whole numbers that keeps its value under another name (docs of dataclasses)."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else getattr(instance, self._name)

    def __set__(self, instance: object, value: float) -> None:
        setattr(instance, self._name, int(value))


@dataclass
class Counted:
    count: Whole = Whole()


@dataclass(slots=True)
class Slotted:
    amount: int


class More(Slotted):
    __slots__ = ("other",)
    other: int


def test_a_dataclass_that_holds_more_than_its_fields_is_refused() -> None:
    """What it made of an InitVar is no field; nor is what a subclass that is no dataclass itself adds."""
    made = Made(1)
    assert made.double == 2
    assert canonicalize([made, Counted(3.5), Slotted(1), More(2)]) == (  # type: ignore[arg-type]  # it converts
        b'[{"amount":1},{"count":3},{"amount":1},{"amount":2}]'
    )
    with pytest.raises(CanonicalizationError, match="attribute 'kept'"):
        canonicalize(Made(1, "EUR"))
    with pytest.raises(CanonicalizationError, match="attribute 'other'"):
        canonicalize(with_attribute(More(1), "other"))


class Colour(enum.Flag):
    RED = 1


@dataclass
class Price:
    amount: int = 0


@dataclass(frozen=True)
class Trace:
    id: Any = field(default_factory=uuid4)
    notes: list[str] = field(default_factory=list)


class Order(BaseModel):
    static: Price = Price(5)
    made: list[Any] = Field(default_factory=list)
    line: tuple[list[int], ...] = ([],)
    queue: deque[int] = deque([1])
    numbers: list[int] = [1]
    trace: Trace = Field(default_factory=Trace)
    flag: Colour = Field(default_factory=lambda: Colour.RED)
    fee: int = 0
    checked: Decimal = Field(default="1.5", validate_default=True)  # type: ignore[arg-type]  # it is converted


def changed(change: Callable[[Order], object]) -> Order:
    order = Order()
    change(order)
    return order


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (lambda order: setattr(order.static, "amount", 9), b'{"static":{"amount":9}}'),
        (lambda order: order.made.append(Price), None),
        (lambda order: order.line[0].append(9), b'{"line":[[9]]}'),
        (lambda order: order.queue.append(9), b'{"queue":[1,9]}'),
        (lambda order: order.queue.clear(), b'{"queue":[]}'),
        (lambda order: order.numbers.__setitem__(0, True), b'{"numbers":[true]}'),
        (lambda order: object.__setattr__(order, "fee", 5), b'{"fee":5}'),
        (lambda order: None, b"{}"),
    ],
)
def test_an_unset_default_that_was_changed_in_place_counts(
    change: Callable[[Order], object], written: bytes | None
) -> None:
    """Whatever it is made of, and past pydantic's notice."""
    order = changed(change)
    if written is None:
        with pytest.raises(CanonicalizationError, match=r"\$\.made\[0\]: "):
            canonicalize(order)
    else:
        assert canonicalize(order) == written


class Paid(BaseModel):
    price: Price = Field(default_factory=Price)
    trace: Trace = Field(default_factory=Trace)


def test_what_a_factory_made_counts_once_it_can_have_been_filled() -> None:
    """A frozen dataclass holds what the factory gave it, such as an id; any other may have been changed."""
    one, other = Paid(), Paid()
    other.price.amount = 9
    assert canonicalize(one) == b'{"price":{"amount":0}}'
    assert canonicalize(other) == b'{"price":{"amount":9}}'
    other.trace.notes.append("late")
    assert b'"notes":["late"]' in canonicalize(other)


def test_what_a_model_holds_beside_its_fields_is_refused() -> None:
    """Put there past pydantic, which keeps extra members and private attributes elsewhere."""
    order = Order()
    object.__setattr__(order, "kept", 1)
    with pytest.raises(CanonicalizationError, match="attribute 'kept'"):
        canonicalize(order)
