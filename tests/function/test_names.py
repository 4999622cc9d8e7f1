"""A namespace is one function's at a time: two under one name would share their records."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from idemcore import ConfigurationError, Engine
from idemcore_function import idempotent

NAME = "billing.charge"


def charge(invoice: str) -> str:
    return f"charged {invoice}"


def refund(invoice: str) -> str:
    return f"refunded {invoice}"


class Mailer:
    def __call__(self, invoice: str) -> str:
        return f"mailed {invoice}"


def named(idem: Engine, function: Callable[..., Any]) -> Callable[..., Any]:
    return idempotent(idem, key="{invoice}", namespace=NAME)(function)


class Payer:
    def __init__(self, provider: str) -> None:
        self.provider = provider

    def __call__(self, invoice: str) -> str:
        return f"{self.provider} paid {invoice}"

    pay = __call__


def by(provider: str, invoice: str) -> str:
    return f"{provider} paid {invoice}"


def made(provider: str) -> Callable[[str], str]:
    def pay(invoice: str) -> str:
        return f"{provider} paid {invoice}"

    return pay


def written_elsewhere(*, module: str | None = None, file: str | None = None, line: int = 0) -> FunctionType:
    """`charge`, as another import or a notebook's cell makes it."""
    at = charge.__code__
    code = at.replace(co_filename=file or at.co_filename, co_firstlineno=at.co_firstlineno + line)
    again = FunctionType(code, dict(charge.__globals__) if module else charge.__globals__, "charge")
    again.__module__ = module or charge.__module__
    again.__annotations__ = charge.__annotations__
    return again


@pytest.mark.parametrize(
    "other",
    [
        refund,
        functools.partial(refund),
        functools.partial(charge),
        Mailer(),
        made("a"),
        written_elsewhere(line=9),
        written_elsewhere(module="m", file="m.py"),
        written_elsewhere(module="m", file="<string>"),
    ],
    ids=["function", "partial", "of itself", "object", "local", "twice", "elsewhere", "executed text"],
)
def test_another_function_under_a_name_that_is_taken_is_refused(
    idem: Engine, other: Callable[..., Any]
) -> None:
    """A decorator that was copied: a refund would give back the receipt of the charge, and refund nothing."""
    protected = named(idem, charge)
    with pytest.raises(ConfigurationError, match=r"test_names:charge has the namespace 'billing\.charge'"):
        named(idem, other)
    assert protected("i-1") == "charged i-1"


@pytest.mark.parametrize(
    "again",
    [
        charge,
        written_elsewhere(),
        written_elsewhere(file="cell-12.py", line=-9),
        written_elsewhere(module="project.billing"),
    ],
    ids=["itself", "a cell that is run again", "a cell that was changed", "imported under two names"],
)
def test_the_same_function_made_anew_keeps_its_name(idem: Engine, again: Callable[..., Any]) -> None:
    """A cell that is run again, other options in a test."""
    before = named(idem, charge)
    assert before("i-1") == named(idem, again)("i-1") == "charged i-1"


PAIRS: dict[str, Callable[[str], Callable[[str], str]]] = {
    "factory": made,
    "partial": lambda provider: functools.partial(by, provider),
    "object": Payer,
    "partial of a method": lambda provider: functools.partial(Payer(provider).pay),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_what_differs_by_what_it_holds_is_two_functions(idem: Engine, kind: str) -> None:
    """One code, two providers: the second would hand out the receipts of the first."""
    stripe = named(idem, PAIRS[kind]("stripe"))
    with pytest.raises(ConfigurationError, match=r"has the namespace 'billing\.charge'"):
        named(idem, PAIRS[kind]("paypal"))
    assert stripe("i-1") == "stripe paid i-1"


def test_one_name_for_many_functions_is_no_default(idem: Engine) -> None:
    """`singledispatch` has them all written as `_`."""

    def _(invoice: str) -> str:
        return invoice

    for nameless in (_, lambda invoice: invoice):
        with pytest.raises(ConfigurationError, match="no name of its own"):
            idempotent(idem, key="{invoice}")(nameless)


MODULE = """
from idemcore_function import idempotent
from tests.function import test_names

@idempotent(test_names.shared, key="{invoice}")
def charge(invoice):
    return invoice

def make():
    @idempotent(test_names.shared, key="{invoice}")
    def send(invoice):
        return send and invoice

    return send

send = make()
"""
shared = Engine("memory://")


def test_a_module_that_is_reloaded_keeps_its_names_and_gives_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines may have moved meanwhile; in one execution two lines are two functions."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "reloaded_names.py"
    file.write_text(MODULE)
    module = importlib.import_module("reloaded_names")
    first = module.charge
    file.write_text("# moved\n" + MODULE)
    importlib.reload(module)
    assert first("i-1") == module.charge("i-1")
    twice = "kept = charge\n" + MODULE[MODULE.index("@idempotent") : MODULE.index("def make")]
    file.write_text(MODULE + twice)
    with pytest.raises(ConfigurationError, match="reloaded_names:charge has the namespace"):
        importlib.reload(module)
    del sys.modules["reloaded_names"]


def test_each_engine_has_names_of_its_own(idem: Engine) -> None:
    """Two stores share nothing."""
    named(idem, charge)
    with Engine("memory://") as other:
        assert named(other, refund)("i-1") == "refunded i-1"


def test_functions_of_tests_and_factories_may_take_turns(idem: Engine) -> None:
    """Once nobody can call it a function has no name, though it holds itself as one that calls itself does."""

    def calls_itself() -> str:
        @idempotent(idem, key="{invoice}", namespace=NAME)
        def stub(invoice: str) -> str:
            return f"stub {invoice}" if stub else ""

        return stub("i-1")

    for function in (made("a"), made("b"), charge, lambda invoice: f"other {invoice}"):
        named(idem, function)
        calls_itself()


def test_threads_may_each_make_their_own(idem: Engine) -> None:
    """A function that a request makes for itself is no other request's concern."""
    kept = [named(idem, made("a"))]
    thread = threading.Thread(target=lambda: kept.append(named(idem, made("a"))))
    thread.start()
    thread.join()
    assert [pay("i-1") for pay in kept] == ["a paid i-1", "a paid i-1"]


SCRIPT = """
import multiprocessing
from idemcore import Engine
from idemcore_function import idempotent, key_of

@idempotent(Engine("memory://"), key="{n}"NAMED)
def send(n): ...

def say():
    print(key_of(send)(1).operation, flush=True)

if __name__ == "__main__":
    say()
    child = multiprocessing.get_context("spawn").Process(target=say)
    child.start()
    child.join()
"""


@pytest.mark.parametrize(
    "started", [["pkg/worker.py"], ["-"], ["pkg"], ["-m", "cProfile", "pkg/worker.py"]], ids=str
)
def test_a_function_of_a_script_must_be_given_a_name(tmp_path: Path, started: list[str]) -> None:
    """FUN-03: another one may be called like it, and with `-m` or imported it is called otherwise."""
    (tmp_path / "pkg").mkdir()
    for name in ("worker.py", "__main__.py"):
        (tmp_path / "pkg" / name).write_text(SCRIPT.replace("NAMED", ""))
    ended = run(tmp_path, started, SCRIPT.replace("NAMED", ""))
    assert ended.returncode != 0
    assert "ConfigurationError: send is written in a script" in ended.stderr
    assert "such as 'billing.send'" in ended.stderr


@pytest.mark.parametrize(
    ("started", "named", "operation"),
    [
        (["pkg/worker.py"], ", namespace='billing.send'", "billing.send"),
        (["-m", "pkg.worker"], "", "pkg.worker:send"),
    ],
    ids=["script", "module"],
)
def test_the_name_is_the_same_in_a_child_process(
    tmp_path: Path, started: list[str], named: str, operation: str
) -> None:
    """A child of multiprocessing runs what was started once more, under a name of its own."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "worker.py").write_text(SCRIPT.replace("NAMED", named))
    ended = run(tmp_path, started)
    assert (ended.stdout.split(), ended.stderr) == ([operation, operation], "")


def run(folder: Path, started: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *started]
    return subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, timeout=60, check=False
    )
