"""A function that returns before its work is done is refused, and nothing is recorded as done that is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import chain, starmap
from typing import Any

import pytest

from idemcore import ConfigurationError, NotReplayable, OutcomeUnknown, Policy, events
from idemcore.machine import Settlement
from idemcore_function import idempotent, run_batch
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


LAZY: dict[str, Callable[[int], object]] = {
    "coroutine": pays,
    "generator": yields,
    "async_generator": streams,
    "map": lambda n: map(ran.append, [n]),
    "filter": lambda n: filter(ran.append, [n]),
    "starmap": lambda n: starmap(ran.append, [(n,)]),
}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ran.clear()


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("declared", [int, list[int], Any], ids=str)
def test_work_that_waits_to_be_read_is_dropped_and_the_key_is_free(
    bench: Bench, kind: str, declared: Any
) -> None:
    """FUN-07: nothing of it ran, so the call runs once it returns what it should; no answer is kept before."""
    calls: list[object] = []

    def pay(n: int) -> Any:
        calls.append(n)
        return n if len(calls) > 2 else LAZY[kind](n)

    pay.__annotations__["return"] = declared
    protected = idempotent(bench.idem, key="{n}", namespace="pay")(pay)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=f"returned a {kind}"):
            protected(7)
    assert (protected(7), protected(7)) == (7, 7)
    assert (len(calls), ran) == (3, [])
    settled = [event.settlement for event in bench.seen(events.Settled)]  # type: ignore[attr-defined]
    assert settled == [Settlement.RETRY, Settlement.RETRY, Settlement.KEEP]


def test_a_list_of_exceptions_does_not_speak_of_it(bench: Bench) -> None:
    """`keep=(Exception,)` is about the function's own: this error must not become the answer of the key."""
    calls: list[int] = []

    @idempotent(bench.idem, key="{n}", keep=(Exception,))
    def pay(n: int) -> Any:
        calls.append(n)
        return n if len(calls) == 2 else pays(n)

    with pytest.raises(ConfigurationError):
        pay(7)
    assert pay(7) == 7


def test_under_block_it_waits_for_an_operator(bench: Bench) -> None:
    """What the function did before it returned nobody knows, as after an exception of its own."""
    pay = idempotent(bench.idem, key="{n}", namespace="pay", policy=BLOCK)(partial(pays_by, pays))
    with pytest.raises(ConfigurationError):
        pay(7)
    with pytest.raises(OutcomeUnknown):
        pay(7)
    assert ran == []


def pays_by(make: Callable[[int], object], n: int) -> object:
    return make(n)


async def waits() -> None:
    await Awaited()


def begun() -> object:
    coroutine = waits()
    coroutine.send(None)
    return coroutine


@pytest.mark.parametrize("make", [Future, Awaited, begun], ids=lambda make: make.__name__)
def test_what_may_be_under_way_elsewhere_leaves_the_outcome_unknown(
    bench: Bench, make: Callable[[], object]
) -> None:
    """A second run could come beside the first, so none comes by itself."""
    made: list[Any] = []

    @idempotent(bench.idem, key="{n}", policy=Policy())
    def pay(n: int) -> Any:
        made.append(make())
        return made[-1]

    with pytest.raises(ConfigurationError, match="under way elsewhere"):
        pay(7)
    with pytest.raises(OutcomeUnknown):
        pay(7)
    assert len(made) == 1
    if hasattr(made[0], "close"):
        made[0].close()


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


def test_a_batch_reports_it_as_failed_and_as_not_final(bench: Bench) -> None:
    """The batch is run again once the function is mended."""

    @idempotent(bench.idem, key="{n}")
    def pay(n: int) -> Any:
        return pays(n)

    report = run_batch(pay, [1, 2], workers=1)
    assert [(item.status, item.final, type(item.error)) for item in report.items] == [
        ("failed", False, ConfigurationError)
    ] * 2


@pytest.mark.parametrize("declared", [list[int], dict[str, int], Any, None], ids=str)
def test_an_iterator_over_what_is_there_reaches_its_caller_unread(bench: Bench, declared: Any) -> None:
    """The work is done, so it is given once and never runs again; making a record of it would use it up."""

    def pay(n: int) -> Any:
        ran.append(n)
        return chain([n], [n + 1])

    if declared is not None:
        pay.__annotations__["return"] = declared
    protected = idempotent(bench.idem, key="{n}", namespace="pay")(pay)
    assert list(protected(7)) == [7, 8]
    with pytest.raises(NotReplayable):
        protected(7)
    assert ran == [7]
