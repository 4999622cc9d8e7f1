"""A function that returns what is still to be awaited or read has done something, so its key is never freed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from functools import partial
from io import BytesIO
from itertools import chain, starmap
from typing import Any

import pytest

from idemcore import ConfigurationError, OutcomeUnknown, events
from idemcore.codec import JSON
from idemcore_function import idempotent, resolve, run_batch
from tests.core.engine_fixtures import BLOCK, Bench

ran: list[int] = []


async def pays(n: int) -> int:
    ran.append(n)
    return n


def yields(n: int) -> Iterator[int]:
    ran.append(n)
    yield n


async def streams(n: int) -> AsyncIterator[int]:
    ran.append(n)
    yield n


class Awaited:
    def __await__(self) -> Iterator[Any]:
        yield None


async def waits() -> None:
    await Awaited()


def begun_coroutine(n: int) -> object:
    coroutine = waits()
    coroutine.send(None)
    return coroutine


def begun_generator(n: int) -> object:
    generator = (step(n) for step in (ran.append, print))
    next(generator)
    return generator


UNFINISHED: dict[str, Callable[[int], Any]] = {
    "coroutine": pays,
    "coroutine, begun": begun_coroutine,
    "async_generator": streams,
    "Awaited": lambda n: Awaited(),
    "Future": lambda n: Future(),
    "generator": yields,
    "generator, begun": begun_generator,
    "map": lambda n: map(ran.append, [n]),
    "filter": lambda n: filter(ran.append, [n]),
    "starmap": lambda n: starmap(ran.append, [(n,)]),
    "zip": lambda n: zip([n], map(ran.append, [n]), strict=True),
    "chain": lambda n: chain([n], map(ran.append, [n])),
    "list_iterator": lambda n: iter([n]),
    "BytesIO": lambda n: BytesIO(b"receipt"),
}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ran.clear()


@pytest.mark.parametrize("kind", UNFINISHED)
@pytest.mark.parametrize("declared", [int, list[int], dict[str, int], Any, None], ids=str)
def test_what_was_done_before_it_returned_is_never_done_again(bench: Bench, kind: str, declared: Any) -> None:
    """FUN-07: it paid, and returned a view of what it did or a step that is left: nobody can tell which."""
    paid: list[int] = []
    made: list[Any] = []

    def pay(n: int):  # type: ignore[no-untyped-def]
        paid.append(n)
        made.append(UNFINISHED[kind](n))
        return made[-1]

    if declared is not None:
        pay.__annotations__["return"] = declared
    protected = idempotent(bench.idem, key="{n}", namespace="pay")(pay)
    with pytest.raises(ConfigurationError, match=f"returned a {kind.partition(',')[0]}: "):
        protected(7)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            protected(7)
    assert paid == [7]
    assert ran == ([7] if kind == "generator, begun" else [])  # nothing of it was run for a record
    assert len(bench.seen(events.OutcomeInDoubt)) == 1
    for each in made:
        if kind.endswith("begun"):
            each.close()


@pytest.mark.parametrize("options", [{"keep": (Exception,)}, {"policy": BLOCK}], ids=str)
def test_no_option_says_otherwise(bench: Bench, options: dict[str, Any]) -> None:
    """`keep=` is about the function's own exceptions: this error must not become the answer of the key."""
    pay = idempotent(bench.idem, key="{n}", namespace="pay", **options)(partial(returned_by, yields))
    for error in (ConfigurationError, OutcomeUnknown):
        with pytest.raises(error):
            pay(7)
    assert ran == []


def returned_by(make: Callable[[int], object], n: int) -> object:
    return make(n)


def test_an_operator_who_has_looked_settles_it(bench: Bench) -> None:
    """Once it is mended it runs, where he found nothing done."""
    returned = [map(ran.append, [7]), "paid"]
    pay = idempotent(bench.idem, key="{n}", namespace="pay")(lambda n: returned.pop(0))
    with pytest.raises(ConfigurationError):
        pay(7)
    assert resolve(pay, "not_done")(7)
    assert (pay(7), pay(7)) == ("paid", "paid")


def test_what_an_engine_runs_is_held_to_the_same(bench: Bench) -> None:
    """`Engine.run` is what other adapters are made of."""
    for error in (ConfigurationError, OutcomeUnknown):
        with pytest.raises(error):
            bench.idem.run(
                lambda: map(ran.append, [7]),
                scope="s",
                operation="pay",
                key="7",
                fingerprint="v1:f",
                codec=JSON,
            )
    assert ran == []


def test_a_task_goes_on_and_is_not_begun_twice(bench: Bench) -> None:
    """The loop has it already; only its outcome is unknown."""

    @idempotent(bench.idem, key="{n}")
    def pay(n: int) -> Any:
        return asyncio.ensure_future(pays(n))

    async def main() -> None:
        for error in (ConfigurationError, OutcomeUnknown):
            with pytest.raises(error):
                pay(7)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ran == [7]


def test_a_batch_reports_it_as_unknown(bench: Bench) -> None:
    """Mending the function is not enough: somebody looks at what the items came to."""

    @idempotent(bench.idem, key="{n}")
    def pay(n: int) -> Any:
        return pays(n)

    report = run_batch(pay, [1, 2], workers=1)
    assert [(item.status, item.final, type(item.error)) for item in report.items] == [
        ("unknown", False, ConfigurationError)
    ] * 2


class Pages:
    """A result of the program's own, which happens to be an iterator too."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __next__(self) -> int:
        raise StopIteration


class PagesCodec:
    def encode(self, value: Pages) -> bytes:
        return b"%d" % value.count

    def decode(self, body: bytes) -> Pages:
        return Pages(int(body))


def test_a_codec_that_takes_an_iterator_says_that_it_is_the_result(bench: Bench) -> None:
    """What it is the codec knows, and a replay is made by it as well."""

    @idempotent(bench.idem, key="{n}", codec=PagesCodec())
    def pages(n: int) -> Pages:
        ran.append(n)
        return Pages(n)

    assert (pages(7).count, pages(7).count) == (7, 7)
    assert ran == [7]
