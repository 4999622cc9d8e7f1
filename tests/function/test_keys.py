"""Keys and scopes: what a template reads, what a callable is given, what is refused and when."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from idemcore import (
    SINGLE_TENANT,
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    KeyInvalid,
    KeyMissing,
    ScopeMissing,
)
from idemcore_function import ALL_ARGUMENTS, idempotent, key_of
from tests.core.engine_fixtures import Bench, make_bench


class Customer(BaseModel):
    id: int | None = None


class Invoice(BaseModel):
    id: str | None
    tenant_id: str | None = None
    customer: Customer | None = None

    @property
    def number(self) -> str:
        return f"n{self.id}"


@dataclass
class Line:
    id: str
    price: Decimal = Decimal(0)


class Colour(Enum):
    RED = "red"


def keyed(template: Any, *values: Any, **changes: Any) -> str:
    """The key that a template makes of up to three values a, b, c."""

    @idempotent(make_bench().idem, key=template, **changes)
    def f(a: object = None, b: object = None, c: object = None) -> None: ...

    return key_of(f)(*values).key


@pytest.mark.parametrize(
    ("template", "values", "key"),
    [
        ("{a}", ("x",), "x"),
        ("{a}", (7,), "7"),
        ("{a}", (UUID(int=1),), "00000000-0000-0000-0000-000000000001"),
        ("{a}", (Colour.RED,), "red"),
        ("{a}", (date(2024, 2, 29),), "2024-02-29"),
        ("{a}", (datetime(2024, 2, 29, 12, tzinfo=UTC),), "2024-02-29T12:00:00Z"),
        ("{a}", (Decimal("1.50"),), "1.5"),
        ("{a}", (0,), "0"),
        ("order-{a.id}", (Invoice(id="i1"),), "order-i1"),
        ("{a.number}", (Invoice(id="i1"),), "ni1"),
        ("{a.customer.id}", (Invoice(id="i", customer=Customer(id=9)),), "9"),
        ("{a[id]}", ({"id": "d1"},), "d1"),
        ("{a[1].id}", ([Line("x"), Line("y")],), "y"),
        ("{{{a}}}", ("x",), "{x}"),
        ("{a}-{b}", ("x", "y"), "x-y"),
        ("{a}-{b}", ("x-1", "y%"), "x%2D1-y%25"),
        ("{a}→{b}", ("→", "y"), "%E2%86%92→y"),
    ],
)
def test_a_template_reads_attributes_and_members(template: str, values: tuple[Any, ...], key: str) -> None:
    """Texts, ints, UUIDs, enums, dates and numbers stand for themselves."""
    assert keyed(template, *values) == key


@given(st.lists(st.text(min_size=1, max_size=4), min_size=4, max_size=4))
def test_two_pairs_of_values_never_come_to_one_key(texts: list[str]) -> None:
    """CAN-07: what separates the values is escaped inside of them, whatever they hold."""
    texts = [text.replace("\0", "0") + "-" for text in texts]
    pairs = [(texts[0], texts[1]), (texts[2], texts[3]), (texts[0] + texts[2], texts[3])]
    keys = [keyed("{a}-%{b}", *pair) for pair in pairs]
    assert len(set(keys)) == len(set(pairs))


def test_a_dash_on_either_side_is_not_the_same_key() -> None:
    """CAN-07: ("a-b", "c") and ("a", "b-c")."""
    assert keyed("{a}-{b}", "a-b", "c") != keyed("{a}-{b}", "a", "b-c")


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{a}", None),
        ("{a}", ""),
        ("{a.id}", Invoice(id=None)),
        ("{a.customer.id}", Invoice(id="i")),
        ("{a[id]}", {}),
        ("{a[3]}", []),
        ("x-{a.id}", Invoice(id="")),
    ],
)
def test_a_part_that_is_none_or_empty_is_a_missing_key(template: str, value: Any) -> None:
    """KEY-06: never one common key for everybody whose id is missing."""
    with pytest.raises(KeyMissing):
        keyed(template, value)


@pytest.mark.parametrize(
    "template",
    [
        "{d}",
        "{a",
        "a}",
        "{}",
        "{0}",
        "constant",
        "",
        "{a!r}",
        "{a:>10}",
        "{a.__class__}",
        "{a._secret}",
        "{a.b.__init__}",
        "{a[}",
        "{a[]}",
        "{a.}",
        "{a b}",
        "{a}{b}",
        "{a}%{b}",
    ],
)
def test_a_template_that_cannot_be_right_is_refused_at_decoration(template: str) -> None:
    """Unknown names, formats, private names, and values that nothing separates."""
    with pytest.raises(ConfigurationError):
        idempotent(make_bench().idem, key=template)(_three)


def _three(a: object, b: object, c: object) -> None: ...


def test_an_attribute_that_a_model_or_dataclass_lacks_is_refused_at_decoration(idem: Engine) -> None:
    """A typo in a template is found when the program starts, at any depth that types tell of."""

    def model(invoice: Invoice) -> None: ...

    def data(line: Line) -> None: ...

    for template, function in [("{invoice.ide}", model), ("{line.ide}", data)]:
        with pytest.raises(ConfigurationError, match="fields of"):
            idempotent(idem, key=template)(function)  # type: ignore[arg-type]  # one of two signatures
    idempotent(idem, key="{invoice.number}")(model)


def test_an_attribute_is_read_once_and_what_it_raises_passes() -> None:
    """A property may count, or look something up; an error of its own is the caller's to see, as it is."""
    read: list[str] = []

    class Order:
        @property
        def id(self) -> int:
            read.append("id")
            return 7

        @property
        def broken(self) -> int:
            raise ValueError("no number yet")

    assert keyed("{a.id}", Order(), exclude={"a"}) == "7"
    assert read == ["id"]
    with pytest.raises(ValueError, match="no number yet") as caught:
        keyed("{a.broken}", Order(), exclude={"a"})
    assert caught.value.__context__ is None


def test_an_attribute_that_is_not_there_at_the_call_is_a_programs_error(idem: Engine) -> None:
    """With a hint where a member of a dict was meant."""
    with pytest.raises(ConfigurationError, match=r"\[id\]"):
        keyed("{a.id}", {"id": 1})
    with pytest.raises(ConfigurationError):
        keyed("{a[id]}", 3)


@pytest.mark.parametrize("value", [object(), {"id": 1}, ["x"], b"x", Invoice(id="1")])
def test_a_value_without_a_text_of_its_own_makes_no_key(value: Any) -> None:
    """A repr with an address in it would be another key in each process."""
    with pytest.raises(ConfigurationError):
        keyed("{a}", value)
    with pytest.raises(ConfigurationError):
        keyed(lambda a: a, value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda a, b, c: f"{a}/{b}",
        lambda b, a: f"{a}/{b}",
        lambda a, **rest: f"{a}/{rest['b']}",
        lambda *args: f"{args[0]}/{args[1]}",
        lambda x, y, z: f"{x}/{y}",
        lambda **named: f"{named['a']}/{named['b']}",
        lambda *, b, a: f"{a}/{b}",
        lambda *args, **rest: f"{args[0]}/{args[1]}",
    ],
)
def test_a_callable_gets_the_arguments_that_it_names(ask: Callable[..., str]) -> None:
    """By name, in its own order; all of them as the function would, where it names them otherwise."""
    assert keyed(ask, 1, 2) == "1/2"


@pytest.mark.parametrize("ask", [lambda x: x, lambda b, x, a: b, lambda a, b, c, d: a, 3, None, b"{a}"])
def test_a_callable_that_does_not_fit_is_refused_at_decoration(ask: Any) -> None:
    """Too few, too many, or the function's own names in other places."""
    with pytest.raises(ConfigurationError):
        idempotent(make_bench().idem, key=ask)(_three)


def test_a_callable_gets_keywords_and_rest_as_the_function_has_them(idem: Engine) -> None:
    """Keyword-only parameters and `**rest` arrive by keyword."""

    def f(a: int, *more: int, b: int = 2, **rest: int) -> None: ...

    by_name = idempotent(idem, key=lambda a, **rest: f"{a}{sorted(rest.items())}")(f)
    assert key_of(by_name)(1, b=3, x=4).key == "1[('b', 3), ('more', ()), ('x', 4)]"
    as_called = idempotent(idem, key=lambda *args, **rest: f"{args}{sorted(rest.items())}")(f)
    assert key_of(as_called)(1, 5, x=4).key == "(1, 5)[('b', 2), ('x', 4)]"


def test_a_parameter_s_own_argument_is_what_a_callable_sees() -> None:
    """FUN-01: by position, and not the other one of that name that only ``**`` takes."""

    def f(a: int, /, **rest: int) -> None: ...

    decorated = idempotent(make_bench().idem, key=lambda **named: str(named["a"]))(f)
    assert [key_of(decorated)(a, a=2).key for a in (1, 3)] == ["1", "3"]


def test_the_key_is_asked_for_once_before_the_function_runs(bench: Bench) -> None:
    """FUN-08: a callable that makes a fresh key each time leaves one completed record."""
    asked = []

    def fresh(n: int) -> str:
        asked.append(uuid.uuid4())
        return str(asked[-1])

    @idempotent(bench.idem, key=fresh)
    def f(n: int) -> str:
        assert len(asked) == 1
        return "done"

    f(1)
    records = bench.idem.store.find(limit=10)
    assert [(found.identity.key, str(found.record.state)) for found in records] == [  # type: ignore[union-attr]
        (str(asked[0]), "completed")
    ]


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_callable_that_returns_nothing_is_a_missing_key(bench: Bench, nothing: Any) -> None:
    """KEY-06: nothing runs and nothing is stored."""
    ran = []

    @idempotent(bench.idem, key=lambda n: nothing)
    def f(n: int) -> None:
        ran.append(n)

    with pytest.raises(KeyMissing):
        f(1)
    assert (ran, bench.idem.store.find(limit=1)) == ([], [])


def test_what_a_callable_raises_passes_unchanged(idem: Engine) -> None:
    """A key that cannot be made stops the call before anything is claimed."""
    broken = LookupError("no request")

    def ask(n: int) -> str:
        raise broken

    with pytest.raises(LookupError) as caught:
        idempotent(idem, key=ask)(_one)(1)
    assert caught.value is broken


def _one(n: int) -> None: ...


def test_a_key_that_is_too_long_is_refused_before_the_store(bench: Bench) -> None:
    """KEY-07: never cut, so two keys with one beginning cannot meet."""
    with pytest.raises(KeyInvalid):
        keyed("{a}", "x" * 256)


def test_all_arguments_are_the_key_by_choice(idem: Engine) -> None:
    """Two calls are one when all arguments are equal; an excluded one does not count."""
    ran = []

    @idempotent(idem, key=ALL_ARGUMENTS, exclude={"log"})
    def f(a: int, b: list[int], log: object = None) -> None:
        ran.append((a, b))

    f(1, [2])
    f(1, [2], object())
    f(1, [3])
    assert ran == [(1, [2]), (1, [3])]


def test_the_scope_keeps_equal_keys_of_two_tenants_apart(idem: Engine) -> None:
    """KEY-01: by template, by callable, as a value; and a tuple, a UUID or an int may stand for a tenant."""
    ran = []

    def f(key: str, tenant: Any) -> str:
        ran.append(tenant)
        return f"for {tenant}"

    for scope in ("{tenant}", lambda tenant: tenant, lambda tenant: ("eu", tenant)):
        g = idempotent(idem, key="{key}", scope=scope, namespace="n")(f)
        assert [g("k", "a"), g("k", "b"), g("k", "a")] == ["for a", "for b", "for a"]
    assert len(ran) == 4  # template and callable name the same tenants
    fixed = idempotent(idem, key="{key}", scope="tenant-7")(f)
    assert key_of(fixed)("k", "x").scope == "tenant-7"
    alone = idempotent(idem, key="{key}", scope=SINGLE_TENANT)(f)
    assert key_of(alone)("k", "x") == key_of(idempotent(idem, key="{key}")(f))("k", "x")


@pytest.mark.parametrize("nobody", [None, ""])
def test_a_scope_of_nobody_is_refused(bench: Bench, nobody: Any) -> None:
    """Never one bucket for all strangers; nothing runs."""
    for scope in ("{tenant}", lambda tenant: tenant):
        f = idempotent(bench.idem, key="{n}", scope=scope)(_of_tenant)
        with pytest.raises(ScopeMissing):
            f(1, nobody)
    with pytest.raises(ScopeMissing):
        idempotent(bench.idem, key="{n}", scope=nobody)(_of_tenant)


def _of_tenant(n: int, tenant: object) -> None: ...


def test_equal_models_are_one_call_and_a_changed_amount_is_a_mismatch(idem: Engine) -> None:
    """CAN-08: UUID, date, datetime, Decimal and Enum inside a model."""

    class Order(BaseModel):
        id: UUID
        day: date
        at: datetime
        amount: Decimal
        colour: Colour

    def order(amount: str) -> Order:
        return Order(
            id=UUID(int=5),
            day=date(2024, 1, 1),
            at=datetime(2024, 1, 1, tzinfo=UTC),
            amount=Decimal(amount),
            colour=Colour.RED,
        )

    ran = []

    @idempotent(idem, key="{order.id}")
    def f(order: Order) -> None:
        ran.append(order)

    f(order("1.50"))
    f(order("1.5"))
    with pytest.raises(FingerprintMismatch):
        f(order("1.51"))
    assert len(ran) == 1
