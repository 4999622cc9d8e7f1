"""Values as JSON and back: by themselves where JSON has them, tagged where it does not."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore import RecordUnreadable, ResultNotSerializable
from idemcore.codec import JSON
from idemcore.exact import is_exact_json, tagged, untagged
from idemcore.same import same

zones = st.none() | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)  # in a set it is not equal to itself
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.datetimes(timezones=zones)
)
hashable = st.recursive(
    scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
values = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.just("$"), inner, max_size=3)
        | st.dictionaries(hashable, inner, max_size=2)
        | st.sets(hashable, max_size=3)
    ),
    max_leaves=10,
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(values)
def test_every_tagged_value_comes_back_as_it_was(value: Any) -> None:
    """Through JSON text, with the same types at every level."""
    assert same(untagged(json.loads(json.dumps(tagged(value)))), value)


@given(plain)
def test_plain_json_is_kept_as_it_is(value: Any) -> None:
    """By the codec of functions without an annotation, surrogates included."""
    assert is_exact_json(value)
    assert same(JSON.decode(JSON.encode(value)), value)


@pytest.mark.parametrize("value", [object(), Exception(), 1j, range(3), [object()], {"a": object()}])
def test_what_has_no_tagged_form_is_refused(value: Any) -> None:
    """Never by its repr."""
    with pytest.raises(TypeError):
        tagged(value)
    with pytest.raises(ResultNotSerializable):
        JSON.encode(value)


@pytest.mark.parametrize("body", [b"", b"{", b"1 2", b"\xff", b"[" * 100_000, b"nul"])
def test_bytes_that_are_no_json_are_unreadable(body: bytes) -> None:
    """A damaged record never becomes a value."""
    with pytest.raises(RecordUnreadable):
        JSON.decode(body)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (Decimal("1.0"), Decimal("1.00")),
        ([1], [True]),
        ((1,), [1]),
        ({1}, {True}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: 0}, {True: 0}),
        ("1", UUID(int=1)),
        (0.0, math.nan),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_values_that_merely_compare_equal_are_not_the_same(one: Any, other: Any) -> None:
    """``==`` would let a replay change a type."""
    assert same(one, one)
    assert not same(one, other)
    assert not same(other, one)
