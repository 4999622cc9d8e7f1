"""A replay gives back the same type and value, and what cannot be kept is never run again for that."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
import typing
import uuid
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, Never, TypeVar
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, computed_field

from idemcore import ConfigurationError, Engine, NotReplayable, RecordUnreadable, ResultNotSerializable, events
from idemcore.codec import JSON, TypeCodec
from idemcore.same import same
from idemcore_function import idempotent, key_of
from tests.core.engine_fixtures import Bench


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 2


class Receipt(BaseModel):
    id: UUID
    amount: Decimal
    at: datetime
    colours: set[Colour] = set()
    seen_as: str = Field(default="x", validation_alias="in", serialization_alias="out")

    @computed_field
    def label(self) -> str:
        return f"{self.amount}"


class Strict(Receipt):
    model_config = ConfigDict(extra="forbid")


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: int


@dataclasses.dataclass(frozen=True)
class Pair:
    left: Decimal
    right: tuple[int, ...]


class Point(NamedTuple):
    x: int
    y: Decimal


class Hidden(BaseModel):
    kept: int
    dropped: int = Field(default=0, exclude=True)


class Whole(RootModel[list[int]]):
    pass


class Cat(BaseModel):
    kind: Literal["cat"]
    age: int


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int


T = TypeVar("T")


class Boxed(BaseModel, Generic[T]):
    content: T


class Opaque:
    """A class that nothing knows how to write."""


RECEIPT = Receipt(id=UUID(int=7), amount=Decimal("1.50"), at=datetime(2024, 1, 1, tzinfo=UTC))

KEPT: list[tuple[Any, Any]] = [
    (None, None),
    (int, 0),
    (int, 2**80),
    (str, ""),
    (str, "€\ud800\x00"),
    (bool, False),
    (float, 0.1),
    (float, math.inf),
    (float, math.nan),
    (bytes, b""),
    (bytes, b"\xff\x00"),
    (Decimal, Decimal("1.50")),
    (Decimal, Decimal("1E+3")),
    (UUID, UUID(int=1)),
    (date, date(2024, 2, 29)),
    (time, time(1, 2, 3, 4)),
    (timedelta, timedelta(days=-1, microseconds=1)),
    (datetime, datetime(2024, 1, 1, 12, 30, 0, 5)),
    (datetime, datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
    (Colour, Colour.RED),
    (Size, Size.BIG),
    (int | None, None),
    (int | None, 0),
    (list[int], []),
    (dict[int, Decimal], {2: Decimal("1.0"), 1: Decimal(0)}),
    (dict[str, Any], {"b": [1, None], "a": {"x": 1.5}}),
    (tuple[int, ...], ()),
    (tuple[int, str], (1, "1")),
    (set[int], {1, 2}),
    (frozenset[str], frozenset({"a"})),
    (list[bytes], [b"\xff"]),
    (int | str, "1"),
    (Decimal | str, "1.0"),
    (Receipt, RECEIPT),
    (Strict, Strict(**{"id": UUID(int=7), "amount": 1, "at": datetime(2024, 1, 1), "in": "y"})),
    (Loose, Loose(id=1, more="x")),  # type: ignore[call-arg]  # extras are allowed at run time
    (list[Receipt | None], [RECEIPT, None]),
    (Pair, Pair(Decimal("0.10"), (1, 2))),
    (Point, Point(1, Decimal("2.50"))),
    (Path, Path("/var/lib")),
    (IPv4Address, IPv4Address("10.0.0.1")),
    (Sequence[int], [1, 2]),
    (defaultdict[str, list[int]], defaultdict(list, {"a": [1]})),
    (Whole, Whole([1, 2])),
    (Cat | Dog, Dog(kind="dog", age=3)),
    (Boxed[Decimal], Boxed[Decimal](content=Decimal("1.0"))),
    (Any, {"a": [1, "x", None, True]}),
    (object, 1),
]


@pytest.mark.parametrize(("declared", "value"), KEPT, ids=str)
def test_a_replay_has_the_same_type_and_value(idem: Engine, declared: Any, value: Any) -> None:
    """FUN-02: None, 0, the empty text and False are results; each runs once and comes back as it was."""
    ran = []

    def f(n: int) -> Any:
        ran.append(n)
        return value

    f.__annotations__["return"] = declared
    g = idempotent(idem, key="{n}")(f)
    first, again = g(1), g(1)
    assert first is value
    assert same(again, value), again
    assert ran == [1]


@pytest.mark.parametrize(
    "value", [None, 0, "", False, [], {}, [1, {"a": None, "ü": [1.5, True]}], 2**70, "\ud800", 1e300]
)
def test_without_an_annotation_plain_json_is_kept_exactly(idem: Engine, value: Any) -> None:
    """FUN-02: an unannotated function's plain values come back with their types."""
    ran = []

    @idempotent(idem, key="{n}")
    def f(n):  # type: ignore[no-untyped-def]
        ran.append(n)
        return value

    f(1)
    assert same(f(1), value)
    assert ran == [1]


def looped() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {1: 2},
        {1, 2},
        Decimal(1),
        Opaque(),
        [Size.BIG],
        math.nan,
        10**5000,
        looped(),
        b"x",
        object,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_plain_json_would_change_is_not_kept_and_never_runs_again(bench: Bench, value: Any) -> None:
    """The caller has its result, a retry is told that there is none, and an event says so."""
    ran = []

    @idempotent(bench.idem, key="{n}")
    def f(n):  # type: ignore[no-untyped-def]
        ran.append(n)
        return value

    assert f(1) is value
    with pytest.raises(NotReplayable):
        f(1)
    assert ran == [1]
    assert len(bench.seen(events.AnswerNotKept)) == 1


def test_a_function_without_an_annotation_may_be_refused_by_choice(idem: Engine) -> None:
    """For programs that want every result declared."""

    def f(n):  # type: ignore[no-untyped-def]
        return n

    with pytest.raises(ConfigurationError, match="annotate its return type"):
        idempotent(idem, key="{n}", unannotated="refuse")(f)


@pytest.mark.parametrize(
    "declared",
    [
        Opaque,
        list[Opaque],
        Callable[[], int],
        Iterator[int],
        Awaitable[int],
        SecretStr,
        dict[str, SecretStr],
        Hidden,
        type[int],
    ],
    ids=str,
)
def test_a_result_type_that_cannot_be_kept_is_refused_at_decoration(idem: Engine, declared: Any) -> None:
    """Before any effect; the message names the type and what to do."""

    def f(n: int) -> Any: ...

    f.__annotations__["return"] = declared
    with pytest.raises(ResultNotSerializable, match=r"cannot be kept.*codec") as caught:
        idempotent(idem, key="{n}")(f)
    assert "test_results" in str(caught.value)


def test_a_result_type_that_is_not_known_yet_is_refused_at_decoration(idem: Engine) -> None:
    """A name that only a type checker knows cannot be checked, so it is said."""

    def f(n: int) -> Later: ...  # type: ignore[name-defined]  # noqa: F821 - that is the case here

    with pytest.raises(ConfigurationError, match="not known where it is decorated"):
        idempotent(idem, key="{n}")(f)


def test_result_types_that_are_local_to_a_function_are_found(idem: Engine) -> None:
    """Annotations are texts in modules with `from __future__ import annotations`."""

    class Local(BaseModel):
        n: Decimal

    @idempotent(idem, key="{n}")
    def f(n: int) -> Local:
        return Local(n=Decimal("1.10"))

    assert f(1) == f(1) == Local(n=Decimal("1.10"))
    assert type(f(1)) is Local


@pytest.mark.parametrize(
    ("declared", "value"),
    [(str, None), (float, 3), (int, True), (Receipt, None), (Receipt, {"a": 1}), (Decimal, 0), (None, "x")],
    ids=str,
)
def test_plain_json_of_another_type_than_declared_is_kept_as_what_it_is(
    idem: Engine, declared: Any, value: Any
) -> None:
    """A careless annotation costs nobody an answer."""

    def f(n: int) -> Any:
        return value

    f.__annotations__["return"] = declared
    g = idempotent(idem, key="{n}")(f)
    g(1)
    assert same(g(1), value)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Receipt, RECEIPT.model_copy(update={"amount": "not checked"})),
        (Receipt, Strict(id=UUID(int=7), amount=Decimal(1), at=datetime(2024, 1, 1))),
        (list[int], (1, 2)),
        (Decimal, Decimal("NaN")),
        (dict[str, Any], {"amount": Decimal("1.0")}),
        (set[tuple[int, ...]], {(True,)}),
        (frozenset[Pair], frozenset({Pair(Decimal("1.0"), (1, True))})),
        (int, Opaque()),
        (Any, Opaque()),
    ],
    ids=str,
)
def test_a_value_that_its_declared_type_would_change_is_not_kept(
    bench: Bench, declared: Any, value: Any
) -> None:
    """A subclass's fields, a tuple as a list: rather no answer than another one."""
    ran = []

    def f(n: int) -> Any:
        ran.append(n)
        return value

    f.__annotations__["return"] = declared
    g = idempotent(bench.idem, key="{n}")(f)
    assert g(1) is value
    with pytest.raises(NotReplayable):
        g(1)
    assert ran == [1]
    assert len(bench.seen(events.AnswerNotKept)) == 1


def test_a_codec_of_ones_own_is_used_and_one_that_breaks_runs_nothing_twice(bench: Bench) -> None:
    """Whatever a codec raises, the work is done: a tombstone, never a second run."""
    ran = []

    class Broken:
        def encode(self, value: object) -> bytes:
            raise ZeroDivisionError

        def decode(self, body: bytes) -> object:
            return body

    class Upper:
        def encode(self, value: str) -> bytes:
            return value.encode()

        def decode(self, body: bytes) -> str:
            return body.decode().upper()

    def f(n: int) -> str:
        ran.append(n)
        return "done"

    upper = idempotent(bench.idem, key="{n}", codec=Upper(), namespace="upper")(f)
    assert [upper(1), upper(1)] == ["done", "DONE"]
    broken = idempotent(bench.idem, key="{n}", codec=Broken(), namespace="broken")(f)
    assert broken(2) == "done"
    with pytest.raises(NotReplayable):
        broken(2)
    assert ran == [1, 2]


def test_a_codec_that_cannot_read_what_it_wrote_is_an_unreadable_record() -> None:
    """Its exception is not mistaken for one of the function's, and somebody is told to look."""

    class OneWay:
        def encode(self, value: str) -> bytes:
            return value.encode()

        def decode(self, body: bytes) -> str:
            raise LookupError(body)

    seen: list[events.Event] = []
    f = idempotent(Engine("memory://", observers=[seen.append]), key="{n}", codec=OneWay())(_done)
    f(1)
    for _ in range(2):
        with pytest.raises(RecordUnreadable):
            f(1)
    (alarm,) = [event for event in seen if isinstance(event, events.RecordDamaged)]
    assert alarm.identity == key_of(f)(1)


def test_the_result_type_is_found_behind_partials_wrappers_and_objects(idem: Engine) -> None:
    """What cannot be kept is refused there too, and what can is kept as it is."""

    def send(channel: str, n: int) -> tuple[Decimal, int]:
        return Decimal("1.0"), n

    class Sends:
        def __call__(self, n: int) -> tuple[Decimal, int]:
            return Decimal("1.0"), n

    by_mail = idempotent(idem, key="{n}", namespace="mail")(functools.partial(send, "mail"))
    by_object = idempotent(idem, key="{n}", namespace="object")(Sends())
    for f in (by_mail, by_object):
        f(n=1)
        assert same(f(n=1), (Decimal("1.0"), 1))


def test_an_interrupt_while_a_result_is_written_does_not_free_the_key(bench: Bench) -> None:
    """LEA-07: the work is done, so Ctrl-C at that moment leaves a tombstone, and passes."""

    class Interrupted:
        def encode(self, value: object) -> bytes:
            raise KeyboardInterrupt

        def decode(self, body: bytes) -> object:
            return body

    f = idempotent(bench.idem, key="{n}", codec=Interrupted())(_done)
    with pytest.raises(KeyboardInterrupt):
        f(1)
    with pytest.raises(NotReplayable):
        f(1)


def _done(n: int) -> str:
    return "done"


def test_a_kept_result_that_does_not_fit_its_type_any_more_is_unreadable(idem: Engine) -> None:
    """A return type that changed between two releases is no reason to run again, nor to make things up."""

    def f(n: int) -> Any:
        return Decimal("1.50")

    f.__annotations__["return"] = Decimal
    idempotent(idem, key="{n}", namespace="n")(f)(1)
    f.__annotations__["return"] = Receipt
    with pytest.raises(RecordUnreadable) as caught:
        idempotent(idem, key="{n}", namespace="n")(f)(1)
    assert "1.50" not in str(caught.value)


def test_a_stored_pickle_is_refused_and_not_loaded() -> None:
    """SEC-02: whoever can write to the store can run nothing here."""
    for codec in (JSON, TypeCodec(Receipt)):
        with pytest.raises(RecordUnreadable):
            codec.decode(b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00.")


def test_generated_ids_come_back_and_are_not_made_anew(idem: Engine) -> None:
    """A default factory's value is part of the result."""

    class Made(BaseModel):
        id: UUID = Field(default_factory=uuid.uuid4)

    @idempotent(idem, key="{n}")
    def f(n: int) -> Made:
        return Made()

    assert f(1).id == f(1).id


def test_annotated_types_and_typed_dicts_are_kept(idem: Engine) -> None:
    """Constraints in an annotation do not stand in the way."""
    from typing_extensions import TypedDict as CheckedDict

    class Totals(CheckedDict):
        sum: Decimal

    @idempotent(idem, key="{n}")
    def f(n: int) -> Annotated[list[Totals], {"unit": "EUR"}]:
        return [Totals(sum=Decimal("1.20"))]

    f(1)
    assert same(f(1), [{"sum": Decimal("1.20")}])


def test_a_function_that_never_returns_can_be_decorated(idem: Engine) -> None:
    """Its outcome is its exception."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> Never:
        raise LookupError

    with pytest.raises(LookupError):
        f(1)


def test_results_are_copies_that_no_caller_can_change(idem: Engine) -> None:
    """What one caller does to its replay does not reach the next."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> list[int]:
        return [1]

    f(1).append(2)
    f(1).append(3)
    assert f(1) == [1]


def test_a_deque_that_would_lose_its_bound_is_not_kept(idem: Engine) -> None:
    """JSON has no place for maxlen: a replay without it would grow where the first result did not."""

    @idempotent(idem, key="{n}")
    def last(n: int, bound: int | None) -> deque[int]:
        return deque([1, 2], maxlen=bound)

    assert last(1, None) == last(1, None) == deque([1, 2])
    assert last(2, 3).maxlen == 3
    with pytest.raises(NotReplayable):
        last(2, 3)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes either from there on")
def test_a_typed_dict_that_pydantic_does_not_take_is_told_what_it_does() -> None:
    """The class is right, and comes from the wrong module for this version of Python."""

    class Receipt(typing.TypedDict):
        reference: str

    with pytest.raises(ResultNotSerializable, match=r"it takes typing_extensions\.TypedDict"):
        TypeCodec(Receipt)
