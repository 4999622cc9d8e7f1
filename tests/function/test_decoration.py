"""What is decided when a function is decorated: whether it can be protected at all, and under which name."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from idemcore import (
    SINGLE_TENANT,
    Attempt,
    ConfigurationError,
    Engine,
    InProgress,
    Policy,
    current_attempt,
    fingerprint,
)
from idemcore.record import Record, State
from idemcore_function import ALL_ARGUMENTS, forget, idempotent, key_of, outcome, resolve
from idemcore_function.decorator import operation_of
from tests.core.engine_fixtures import Bench


async def pays_later(n: int) -> None: ...


async def streams(n: int) -> AsyncIterator[int]:
    yield n


def yields(n: int) -> Iterator[int]:
    yield n


class CalledLater:
    async def __call__(self, n: int) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        pays_later,
        streams,
        yields,
        functools.partial(pays_later, 1),
        CalledLater(),
        classmethod(lambda cls, n: None),
        staticmethod(lambda n: None),
        CalledLater,
        [].append,
        Engine("memory://").close,
        3,
        lambda n: n,
    ],
    ids=lambda function: type(function).__name__,
)
def test_what_cannot_be_recorded_is_refused(idem: Engine, function: Any) -> None:
    """FUN-07: async functions and generators return before their work is done; a lambda has no name."""
    with pytest.raises(ConfigurationError):
        idempotent(idem, key=ALL_ARGUMENTS)(function)


@pytest.mark.parametrize("key", ["{n}", ALL_ARGUMENTS, lambda n: n], ids=["template", "all", "callable"])
@pytest.mark.parametrize("receiver", ["self", "cls"])
def test_a_method_must_say_what_stands_for_its_object(idem: Engine, key: Any, receiver: str) -> None:
    """Else two accounts would share a key; the error says what to write."""

    def of_object(self: object, n: int) -> None: ...

    def of_class(cls: type, n: int) -> None: ...

    pay: Any = of_object if receiver == "self" else of_class
    with pytest.raises(ConfigurationError) as caught:
        idempotent(idem, key=key)(pay)
    assert f"{{{receiver}.id}}" in str(caught.value)
    assert f"exclude={{'{receiver}'}}" in str(caught.value)
    idempotent(idem, key=key, exclude={receiver})(pay)


def test_a_key_callable_that_takes_the_object_speaks_for_it(idem: Engine) -> None:
    """The object then is no part of the fingerprint, in which nothing could stand for it."""

    class Account:
        def __init__(self, id_: int) -> None:
            self.id = id_

        @idempotent(idem, key=lambda self, n: f"{self.id}-{n}")
        def pay(self, n: int) -> str:
            return f"{self.id} {n}"

    assert [Account(1).pay(1), Account(2).pay(1), Account(1).pay(1)] == ["1 1", "2 1", "1 1"]


@pytest.mark.parametrize("exclude", [{"sesion"}, {"/b/x"}, "a", {""}, {"/a/~2"}, [3]], ids=str)
def test_an_exclusion_that_cannot_be_right_is_refused(idem: Engine, exclude: Any) -> None:
    """A misspelt name would silently let every retry differ."""

    def f(a: int) -> None: ...

    with pytest.raises(ConfigurationError):
        idempotent(idem, key="{a}", exclude=exclude)(f)


def test_decorating_twice_is_refused(idem: Engine) -> None:
    """The inner one would find the outer one's claim in progress."""
    once = idempotent(idem, key="{n}")(_plain)
    with pytest.raises(ConfigurationError, match="already"):
        idempotent(idem, key="{n}")(once)


def _plain(n: int) -> str:
    return "done"


def test_asking_about_a_function_that_is_not_decorated_is_an_error(idem: Engine) -> None:
    """Nor about one that another decorator has wrapped, which asking would step around."""

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args)

        return call

    for ask in (outcome, key_of):
        with pytest.raises(ConfigurationError, match="not decorated"):
            ask(_plain)
        with pytest.raises(ConfigurationError, match="above"):
            ask(logged(idempotent(idem, key="{n}")(_plain)))


def test_the_engines_policy_holds_but_for_what_is_given(bench: Bench) -> None:
    """One policy shared by many decorators stays as it is, and none of them sees another's options."""
    shared = Policy(on_mismatch="ignore", lease=timedelta(seconds=7))
    unchanged = replace(shared)
    one = idempotent(bench.idem, key="{n}", policy=shared, keep=(ValueError,))(_decline)
    two = idempotent(bench.idem, key="{n}", policy=shared, namespace="two")(_decline)
    ran.clear()
    for f in (one, one, two, two):
        with pytest.raises(ValueError, match="no"):
            f(1)
    assert len(ran) == 3
    assert shared == unchanged


ran: list[int] = []


def _decline(n: int) -> None:
    ran.append(n)
    raise ValueError("no")


def test_the_key_may_be_taken_together_with_the_arguments(bench: Bench) -> None:
    """Then another amount under the same key is another operation, and `key_of` names it."""
    policy = Policy(identity="key+content")
    f = idempotent(bench.idem, key="{n}", policy=policy)(_sum)
    assert [f(1, 10), f(1, 20), f(1, 10)] == [11, 21, 11]
    kept = {found.identity for found in bench.idem.store.find(limit=10)}
    assert kept == {key_of(f)(1, 10), key_of(f)(1, 20)}


def _sum(n: int, amount: int) -> int:
    return n + amount


def test_options_are_checked_at_decoration(idem: Engine) -> None:
    """A lease longer than it may be held is found when the program starts."""
    with pytest.raises(ConfigurationError, match="max_hold"):
        idempotent(idem, key="{n}", lease=timedelta(hours=1))
    with pytest.raises(ConfigurationError):
        idempotent(idem, key="{n}", keep=(KeyboardInterrupt,))  # type: ignore[arg-type]


def test_a_call_may_wait_for_one_in_progress(bench: Bench) -> None:
    """`wait=` is for those that rather get the result late than an error now."""

    @idempotent(bench.idem, key="{n}", namespace="n", wait=timedelta(seconds=5))
    def f(n: int) -> str:
        return "done"

    held = bench.idem.begin(scope=SINGLE_TENANT, operation="n", key="1", fingerprint=fingerprint({"n": 1}))
    started = bench.clock()
    with pytest.raises(InProgress):
        f(1)
    assert bench.clock() - started >= 5
    assert isinstance(held, Attempt)


def test_the_engine_may_get_its_store_after_the_function_was_decorated() -> None:
    """As in an application factory; used before that it says so."""
    idem = Engine()
    f = idempotent(idem, key="{n}")(_plain)
    with pytest.raises(ConfigurationError, match="bind"):
        f(1)
    idem.bind("memory://")
    assert f(1) == "done"


def test_an_argument_that_cannot_be_compared_is_named_before_anything_is_claimed(bench: Bench) -> None:
    """The error says which one, and how to leave it out."""
    f = idempotent(bench.idem, key="{n}")(_with_session)
    with pytest.raises(Exception, match=r"\$\.session.*exclude="):
        f(1, object())
    assert bench.idem.store.find(limit=1) == []


def _with_session(n: int, session: object) -> None: ...


def test_a_nested_operation_has_its_own_attempt(idem: Engine) -> None:
    """Inside of another one, and back again afterwards."""

    @idempotent(idem, key="{n}")
    def inner(n: int) -> str:
        return current_attempt().identity.operation

    @idempotent(idem, key="{n}")
    def outer(n: int) -> list[str]:
        before = current_attempt().identity.operation
        return [before, inner(n), current_attempt().identity.operation]

    names = [name.rpartition(".")[2] for name in outer(1)]
    assert names == ["outer", "inner", "outer"]


def test_what_is_no_engine_is_refused() -> None:
    """A URL in its place says what is wanted, when the function is decorated, and is not shown."""
    given: Any = "sqlite:///secret.db"
    with pytest.raises(ConfigurationError, match="takes an Engine, not str") as refused:
        idempotent(given, key=ALL_ARGUMENTS)
    assert "secret" not in str(refused.value)


def test_a_policy_brings_its_own_retention(bench: Bench) -> None:
    """Thirty days are the decorator's own; a policy in its place is taken as it is, but for what is given."""
    days = []
    for given in ({}, {"policy": Policy()}, {"policy": Policy(), "retention": timedelta(days=7)}):
        options: dict[str, Any] = dict(given)
        decorated = idempotent(bench.idem, key=ALL_ARGUMENTS, **options)(_kept)
        operation, *_ = operation_of(decorated)
        days.append(operation.policy.retention.days)
    assert days == [30, 1, 7]


@pytest.mark.parametrize(("engines", "kept"), [(1, 30), (90, 90)])
def test_a_function_is_never_kept_for_less_than_its_engine_says(engines: int, kept: int) -> None:
    """SWE-04: thirty days are the least; they lengthen an engine's retention and do not cut it."""
    idem = Engine("memory://", policy=Policy(retention=timedelta(days=engines)), observers=())
    operation, *_ = operation_of(idempotent(idem, key=ALL_ARGUMENTS)(_kept))
    assert operation.policy.retention == timedelta(days=kept)
    operation, *_ = operation_of(idempotent(idem, key=ALL_ARGUMENTS, retention=timedelta(days=2))(_kept))
    assert operation.policy.retention == timedelta(days=2)


def _kept(n: int) -> int:
    return n


def test_a_result_shows_no_value(bench: Bench) -> None:
    """What a function returned is the caller's data: it is in no repr, so in no log."""
    decorated = idempotent(bench.idem, key=ALL_ARGUMENTS)(_kept)
    assert "4711" not in repr(outcome(decorated)(4711))


def test_a_task_of_a_queue_is_refused_with_the_right_order(idem: Engine) -> None:
    """The worker runs a task by its name: without the protection that stands above it."""
    celery = pytest.importorskip("celery")
    app = celery.Celery("payouts", set_as_current=False)
    for decorated in (app.task(_kept), celery.shared_task(_kept), app.task(bind=True)(_kept)):
        with pytest.raises(ConfigurationError, match=r"@app\.task above @idempotent"):
            idempotent(idem, key=ALL_ARGUMENTS)(decorated)
    app.task(idempotent(idem, key=ALL_ARGUMENTS)(_kept))


@pytest.mark.parametrize("options", [{}, {"autoretry_for": (ValueError,)}], ids=["plain", "retried"])
def test_a_task_is_asked_as_the_function_that_it_calls(idem: Engine, options: dict[str, Any]) -> None:
    """An operator has the task in hand: the name that the module gave away to it. Celery puts a wrapper of its
    own around `run` where it is to try again.
    """
    celery = pytest.importorskip("celery")
    app = celery.Celery("payouts", set_as_current=False)

    def send(n: int) -> str:
        raise TimeoutError

    def send_bound(self: Any, n: int) -> str:
        return send(n)

    plain = app.task(**options)(idempotent(idem, key="{n}", unknown=(TimeoutError,))(send))
    bound = app.task(bind=True, **options)(
        idempotent(idem, key="{n}", exclude={"self"}, unknown=(TimeoutError,))(send_bound)
    )
    for task in (plain, bound):
        with pytest.raises(TimeoutError):
            task(1)
        record = idem.get(key_of(task)(1))
        assert isinstance(record, Record)
        assert record.state is State.UNKNOWN
        assert resolve(task, "returned", "found")(1)
        assert outcome(task)(1)[:2] == ("found", True)
        assert forget(task)(1)
        assert idem.get(key_of(task)(1)) is None
        if options:
            with pytest.raises(ConfigurationError, match="run ask the task"):
                key_of(task.run)

    for ask in (outcome, key_of, forget):
        with pytest.raises(ConfigurationError, match="not decorated"):
            ask(app.task(_kept))
