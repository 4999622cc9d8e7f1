"""One operation is one call, however it is spelled and whatever the function does to its arguments."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from idemcore import (
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    InProgress,
    Policy,
    StoreUnavailable,
    current_attempt,
)
from idemcore.identity import Identity
from idemcore.record import Answer, Claim
from idemcore_function import ALL_ARGUMENTS, idempotent, key_of, outcome
from tests.core.engine_fixtures import TEN_EUROS, Bench, Faulty, make_bench


def test_a_retry_gets_the_result_and_the_function_runs_once(idem: Engine) -> None:
    """The quick start: same key, same arguments, one run."""
    ran = []

    @idempotent(idem, key="{order}")
    def charge(order: str, amount: int) -> str:
        ran.append(order)
        return f"receipt {len(ran)} over {amount}"

    assert charge("o-1", 10) == charge("o-1", 10) == "receipt 1 over 10"
    assert ran == ["o-1"]


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(1),
        lambda f: f(1, 2),
        lambda f: f(a=1, b=2),
        lambda f: f(1, b=2, c=3),
        lambda f: f(c=3, b=2, a=1),
        lambda f: f(1, c=3),
    ],
)
def test_every_spelling_of_a_call_is_one_call(idem: Engine, call: Callable[[Any], object]) -> None:
    """FUN-05: positional, by keyword, in any order, or left to the default."""
    ran = []

    @idempotent(idem, key=ALL_ARGUMENTS)
    def f(a: int, b: int = 2, *, c: int = 3) -> None:
        ran.append((a, b, c))

    f(1)
    call(f)
    assert ran == [(1, 2, 3)]
    f(1, c=4)
    assert ran == [(1, 2, 3), (1, 2, 4)]


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(),
        lambda f: f(1, 2, 3),
        lambda f: f(1, a=1),
        lambda f: f(1, d=4),
        lambda f: f(b=2),
        lambda f: f(1, 2, c=3, d=4),
    ],
)
def test_a_wrong_call_is_refused_as_python_refuses_it_and_claims_nothing(
    bench: Bench, call: Callable[[Any], object]
) -> None:
    """A missing, doubled or unknown argument is a TypeError before anything else happens."""

    @idempotent(bench.idem, key="k-{a}")
    def f(a: int, b: int = 2, *, c: int = 3) -> None: ...

    with pytest.raises(TypeError):
        call(f)
    assert bench.events == []


def test_positional_only_star_args_and_keywords_are_bound_like_python_does(idem: Engine) -> None:
    """FUN-05: what cannot be planned ahead is bound at the call, with the same result."""
    ran = []

    @idempotent(idem, key="{args[0]}-{rest[x]}")
    def f(a: int, /, *args: int, flag: bool = False, **rest: int) -> None:
        ran.append((a, args, flag, rest))

    f(1, 2, 3, x=4)
    f(1, 2, 3, x=4, flag=False)
    f(1, 2, 3, flag=False, x=4)
    assert ran == [(1, (2, 3), False, {"x": 4})]

    @idempotent(idem, key="{a}")
    def g(a: int, /, b: int = 0) -> None:
        ran.append((a, b))

    g(1)
    g(1, b=0)
    with pytest.raises(TypeError, match="positional"):
        g(a=1)  # type: ignore[call-arg]
    assert ran[1:] == [(1, 0)]


def test_names_and_values_of_arguments_cannot_slide_into_each_other(idem: Engine) -> None:
    """CAN-07: `f(a="b=1")` and `f(**{"a=b": "1"})` are two calls."""
    ran = []

    @idempotent(idem, key=ALL_ARGUMENTS)
    def f(**values: str) -> None:
        ran.append(values)

    f(a="b=1")
    f(**{"a=b": "1"})
    f(a="b", b="1")
    assert len(ran) == 3


def test_what_the_function_does_to_its_arguments_changes_nothing(idem: Engine) -> None:
    """FUN-01: key and fingerprint are fixed before it runs, so a retry with a fresh equal dict replays."""
    ran = []

    @idempotent(idem, key="{order[id]}")
    def f(order: dict[str, Any]) -> str:
        ran.append(order.pop("id"))
        order["normalised"] = True
        return "done"

    f({"id": "1", "amount": 10})
    assert f({"id": "1", "amount": 10}) == "done"
    assert ran == ["1"]


def test_a_failing_function_that_mutates_releases_the_right_record(bench: Bench) -> None:
    """FUN-01: the raising variant: the retry takes over the same record, and none is left behind."""
    ran = []

    @idempotent(bench.idem, key="{order[id]}", namespace="n")
    def f(order: dict[str, Any]) -> str:
        ran.append(order.pop("id"))
        if len(ran) == 1:
            raise RuntimeError("network")
        return "done"

    with pytest.raises(RuntimeError):
        f({"id": "1"})
    assert f({"id": "1"}) == "done"
    assert len(bench.idem.store.find(limit=10)) == 1


def test_the_same_key_with_other_arguments_is_refused(idem: Engine) -> None:
    """KEY-05: nothing runs, and the first call still replays."""
    ran = []

    @idempotent(idem, key="{order}")
    def charge(order: str, amount: int) -> int:
        ran.append(amount)
        return amount

    charge("1", 100)
    with pytest.raises(FingerprintMismatch):
        charge("1", 9000)
    assert charge("1", 100) == 100
    assert ran == [100]


def test_a_changed_argument_may_be_ignored_by_choice(idem: Engine) -> None:
    """KEY-05: `on_mismatch="ignore"` replays the first answer, and says so in the code."""
    charge = idempotent(idem, key="{order}", on_mismatch="ignore")(_charge)
    assert charge("1", 100) == charge("1", 9000) == 100


def _charge(order: str, amount: int) -> int:
    return amount


def test_excluded_arguments_may_differ_and_need_no_canonical_form(idem: Engine) -> None:
    """FUN-06: by position and by keyword, and a session object is no error."""
    ran = []

    @idempotent(idem, key="{n}", exclude={"session"})
    def f(n: int, session: object) -> None:
        ran.append(n)

    f(5, object())
    f(5, object())
    f(5, session=object())
    f(session=object(), n=5)
    assert ran == [5]


def test_parts_of_arguments_are_excluded_by_pointer(idem: Engine) -> None:
    """CAN-06: a stamp inside an argument may differ, and a change beside it is still a mismatch."""
    ran = []

    @idempotent(idem, key="{order[id]}", exclude={"/order/sent_at", "/order/lines/*/seen"})
    def f(order: dict[str, Any]) -> None:
        ran.append(order)

    f({"id": 1, "sent_at": 1, "lines": [{"n": 1, "seen": 1}]})
    f({"id": 1, "sent_at": 2, "lines": [{"n": 1, "seen": 2}]})
    with pytest.raises(FingerprintMismatch):
        f({"id": 1, "sent_at": 2, "lines": [{"n": 2, "seen": 2}]})
    assert len(ran) == 1


def test_a_name_that_only_keywords_can_hold_is_excluded_there(idem: Engine) -> None:
    """FUN-06: `exclude={"trace_id"}` reaches into `**options`."""
    ran = []

    @idempotent(idem, key="{n}", exclude={"trace_id"})
    def f(n: int, **options: str) -> None:
        ran.append(options)

    f(1, trace_id="a", mode="x")
    f(1, trace_id="b", mode="x")
    with pytest.raises(FingerprintMismatch):
        f(1, trace_id="b", mode="y")
    assert len(ran) == 1


def test_two_functions_with_equal_arguments_are_two_operations(idem: Engine) -> None:
    """FUN-03: the namespace is part of every identity."""
    ran = []

    @idempotent(idem, key="{x}")
    def charge(x: int) -> str:
        ran.append("charge")
        return "charged"

    @idempotent(idem, key="{x}")
    def refund(x: int) -> str:
        ran.append("refund")
        return "refunded"

    assert [charge(1), refund(1), charge(1), refund(1)] == ["charged", "refunded", "charged", "refunded"]
    assert ran == ["charge", "refund"]


def test_a_method_and_the_one_that_overrides_it_are_two_operations(idem: Engine) -> None:
    """FUN-03: the qualified name tells them apart, even where one calls the other."""

    class Base:
        @idempotent(idem, key="{x}", exclude={"self"})
        def pay(self, x: int) -> str:
            return "base"

    class Child(Base):
        @idempotent(idem, key="{x}", exclude={"self"})
        def pay(self, x: int) -> str:
            return f"child of {super().pay(x)}"

    assert [Base().pay(1), Child().pay(1), Child().pay(1)] == ["base", "child of base", "child of base"]
    assert key_of(Base().pay)(1).operation.endswith("Base.pay")


def test_renaming_or_moving_a_function_with_a_namespace_loses_nothing(idem: Engine) -> None:
    """FUN-04: another name in another module, the same namespace: a replay."""

    def charge(n: int) -> str:
        return "first"

    def collect(n: int) -> str:
        return "second"

    collect.__module__ = "elsewhere"
    assert idempotent(idem, key="{n}", namespace="billing.charge")(charge)(1) == "first"
    assert idempotent(idem, key="{n}", namespace="billing.charge")(collect)(1) == "first"


def test_two_functions_in_two_threads_never_see_each_others_results(idem: Engine) -> None:
    """FUN-03: one store, one policy, the same keys, at the same time."""
    together = threading.Barrier(2)
    got: dict[str, list[str]] = {}

    def made(name: str) -> Callable[[int], str]:
        @idempotent(idem, key="{n}", namespace=name, policy=Policy())
        def f(n: int) -> str:
            return f"{name} {n}"

        return f

    def work(name: str, f: Callable[[int], str]) -> None:
        together.wait()
        got[name] = [f(n % 50) for n in range(300)]

    threads = [threading.Thread(target=work, args=(name, made(name))) for name in ("charge", "refund")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {name: [f"{name} {n % 50}" for n in range(300)] for name in ("charge", "refund")}


def test_simultaneous_calls_run_once_and_wait_for_the_result(bench: Bench) -> None:
    """RAC-01: twenty threads, one run; each of the others gets its result or InProgress, nothing else."""
    idem = Engine("memory://")
    together, ran, got = threading.Barrier(20), [], []

    @idempotent(idem, key="{n}")
    def f(n: int) -> str:
        ran.append(n)
        return "once"

    def work() -> None:
        together.wait()
        try:
            got.append(f(1))
        except InProgress:
            got.append("in progress")

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ran == [1]
    assert len(got) == 20
    assert set(got) <= {"once", "in progress"}


def test_a_run_in_progress_without_any_lease_given_is_no_orphan(idem: Engine) -> None:
    """LEA-02: the second call is refused while the first is inside the function."""
    entered = []

    @idempotent(idem, key="{n}")
    def f(n: int) -> str:
        entered.append(n)
        with pytest.raises(InProgress):
            f(n)
        return "done"

    assert f(1) == "done"
    assert entered == [1]


def test_the_current_attempt_is_known_inside_and_gone_outside(idem: Engine) -> None:
    """A provider's own key comes from the attempt, and is the same in the takeover."""
    keys = []

    @idempotent(idem, key="{n}")
    def f(n: int) -> int:
        keys.append(current_attempt().child_key("provider"))
        if len(keys) == 1:
            raise TimeoutError
        return current_attempt().number

    with pytest.raises(TimeoutError):
        f(1)
    assert f(1) == 2
    assert keys[0] == keys[1]
    with pytest.raises(ConfigurationError):
        current_attempt()


def test_outcome_tells_a_run_from_a_replay(idem: Engine) -> None:
    """REP-07: the value and whether it was there already."""

    @idempotent(idem, key="{n}")
    def f(n: int) -> str:
        return "done"

    first, again = outcome(f)(1), outcome(f)(n=1)
    assert (first.value, first.replayed, first.completed_at) == ("done", False, None)
    assert (again.value, again.replayed) == ("done", True)
    assert again.completed_at is not None


def test_key_of_tells_the_identity_and_runs_nothing(bench: Bench) -> None:
    """For operators: what to look for in the store."""
    ran = []

    @idempotent(bench.idem, key="order-{n}", scope="{tenant}", namespace="shop.order")
    def f(n: int, tenant: str) -> None:
        ran.append(n)

    assert tuple(key_of(f)(7, tenant="t1")) == ("t1", "shop.order", "order-7")
    assert (ran, bench.events) == ([], [])


def test_methods_are_asked_through_their_object(idem: Engine) -> None:
    """`outcome` and `key_of` take a bound method, a class method and a static method."""

    class Account:
        def __init__(self, id_: str) -> None:
            self.id = id_

        @idempotent(idem, key="{self.id}/{n}")
        def pay(self, n: int) -> str:
            return f"{self.id} paid {n}"

        @classmethod
        @idempotent(idem, key="{n}", exclude={"cls"})
        def open(cls, n: int) -> str:
            return f"{cls.__name__} {n}"

        @staticmethod
        @idempotent(idem, key="{n}")
        def close(n: int) -> str:
            return f"closed {n}"

    a, b = Account("a"), Account("b")
    assert [a.pay(1), b.pay(1), a.pay(1)] == ["a paid 1", "b paid 1", "a paid 1"]
    assert outcome(a.pay)(1).replayed
    assert not outcome(b.pay)(2).replayed
    assert key_of(a.pay)(1).key == "a/1"
    assert [Account.open(1), outcome(Account.open)(1).value] == ["Account 1", "Account 1"]
    assert [Account.close(1), outcome(a.close)(1).value] == ["closed 1", "closed 1"]


def test_a_partial_is_decorated_under_a_namespace_of_its_own(idem: Engine) -> None:
    """Issue: partials are callables too; without a name two of them would meet."""

    def send(channel: str, n: int) -> str:
        return f"{channel} {n}"

    by_mail = functools.partial(send, "mail")
    with pytest.raises(ConfigurationError, match="namespace"):
        idempotent(idem, key="{n}")(by_mail)
    mail = idempotent(idem, key="{n}", namespace="mail")(by_mail)
    text = idempotent(idem, key="{n}", namespace="text")(functools.partial(send, "text"))
    assert [mail(1), text(1), mail(1)] == ["mail 1", "text 1", "mail 1"]


def test_a_plain_function_with_its_own_name_and_signature_comes_back(idem: Engine) -> None:
    """HTT-06: what other decorators and readers look at is kept."""

    def f(a: int, *, b: str = "x") -> str:
        """What it does."""
        return b

    f.marked = True  # type: ignore[attr-defined]  # as other extensions do
    decorated = idempotent(idem, key="{a}")(f)
    assert inspect.isfunction(decorated)
    assert (decorated.__name__, decorated.__doc__, decorated.__wrapped__) == ("f", "What it does.", f)  # type: ignore[attr-defined]
    assert inspect.signature(decorated) == inspect.signature(f)
    assert decorated.marked  # type: ignore[attr-defined]


def test_a_store_that_is_down_runs_nothing() -> None:
    """DEG-01: fail closed: StoreUnavailable, and the function is not entered."""
    faulty, ran = Faulty(), []
    bench = make_bench(faulty)

    @idempotent(bench.idem, key="{n}")
    def f(n: int) -> None:
        ran.append(n)

    faulty.break_next("reserve")
    with pytest.raises(StoreUnavailable):
        f(1)
    assert ran == []


def test_work_done_but_not_recorded_gives_its_result_and_does_not_run_again() -> None:
    """OUT-04: the caller has the real result; a retry within the lease waits for the recording."""
    faulty, ran = Faulty(), []
    bench = make_bench(faulty)

    @idempotent(bench.idem, key="{n}")
    def f(n: int) -> str:
        ran.append(n)
        return "real"

    faulty.break_next("complete")
    assert f(1) == "real"
    with pytest.raises(InProgress):
        f(1)
    bench.clock.advance(1)
    bench.idem.keeper.step()
    assert f(1) == "real"
    assert ran == [1]


def test_past_its_retention_a_call_is_a_new_one(bench: Bench) -> None:
    """SWE-04: thirty days by default, since jobs are run again days later."""
    ran = []

    @idempotent(bench.idem, key="{n}")
    def f(n: int) -> None:
        ran.append(n)

    f(1)
    bench.clock.advance(29 * 86400)
    f(1)
    assert ran == [1]
    bench.clock.advance(2 * 86400)
    f(1)
    assert ran == [1, 1]


def test_a_function_may_settle_its_own_attempt(idem: Engine) -> None:
    """`release()` inside says that nothing was done: the result goes to the caller and is not kept."""
    ran = []

    @idempotent(idem, key="{n}")
    def f(n: int) -> str:
        ran.append(n)
        if len(ran) == 1:
            current_attempt().release()
            return "not now"
        return "done"

    assert [f(1), f(1), f(1)] == ["not now", "done", "done"]


def test_what_a_claim_costs_does_not_grow_with_the_records(bench: Bench) -> None:
    """Flat from 10 to 100,000 records, counted in calls of Python and of C, not in time."""

    @idempotent(bench.idem, key="{n}")
    def f(n):  # type: ignore[no-untyped-def]
        return n

    def calls(n: int) -> int:
        count = 0

        def tick(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(tick)
        try:
            f(n)
        finally:
            sys.setprofile(None)
        return count

    for n in range(10):
        f(n)
    few = min(calls(10 + n) for n in range(5))
    store = bench.idem.store
    for n in range(100_000):
        claim = Claim(Identity("t", "filled", str(n)), TEN_EUROS, b"t", 1, 30.0, 600.0, 3600.0, hold=False)
        store.reserve(claim)
        store.complete(claim, Answer("returned", b"", b"1"))
    assert min(calls(20 + n) for n in range(5)) <= few
