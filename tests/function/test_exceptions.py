"""Exceptions: released by default, kept or left in doubt by choice, and the caller's own in every case."""

from __future__ import annotations

import asyncio
import copy
import enum
import pickle
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, Self
from uuid import UUID

import pytest

from idemcore import (
    CallerError,
    ConfigurationError,
    Engine,
    FingerprintMismatch,
    OutcomeUnknown,
    Policy,
    RecordedFailure,
    RecordUnreadable,
    events,
)
from idemcore.identity import identify
from idemcore.raised import decode_exception, encode_exception
from idemcore.same import same
from idemcore_function import idempotent, run_batch
from tests.core.engine_fixtures import Bench


class CardDeclined(Exception):
    """Its constructor takes other arguments than it passes on."""

    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__(f"declined: {detail}")
        self.code = code
        self.detail = detail


class Expired(CardDeclined):
    pass


class Slotted(Exception):
    __slots__ = ("__amount", "code")

    def __init__(self, code: int, amount: Decimal) -> None:
        self.code = code
        self.__amount = amount

    def __str__(self) -> str:
        return f"{self.code}: {self.__amount}"


@dataclass(frozen=True)
class Frozen(Exception):
    amount: Decimal
    at: datetime


class OddlyMade(Exception):
    def __new__(cls, *args: object) -> Self:
        if not args:
            raise TypeError("an argument is required")
        return super().__new__(cls, *args)

    def __init__(self, a: int, b: int) -> None:
        super().__init__(a)
        self.b = b


class Holding(Exception):
    """Holds what no text can stand for."""

    def __init__(self, thing: object) -> None:
        super().__init__("held")
        self.thing = thing


class Looped(Exception):
    """Holds itself."""

    def __init__(self) -> None:
        super().__init__([])
        self.args[0].append(self.args[0])


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


EXCEPTIONS = [
    CardDeclined(51, detail="no funds"),
    Expired(54, detail="expired"),
    Slotted(51, Decimal("1.50")),
    Frozen(Decimal("1.50"), datetime(2024, 1, 1, tzinfo=UTC)),
    OddlyMade(1, 2),
    ValueError("plain", 1, None, ("a", b"\xff"), {"k": {1, 2}}, {1: "x", "$": 0}),
    KeyError("k"),
    OSError(2, "No such file", "payments.csv"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ImportError("no module", name="m", path="p"),
    LookupError(UUID(int=1), float("inf"), frozenset({Decimal(1)})),
    Exception(),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: type(error).__name__)
def test_a_kept_exception_is_raised_again_as_an_equal_one(idem: Engine, error: Exception) -> None:
    """OUT-05: odd constructors, slots, frozen dataclasses and what C code keeps; never a TypeError."""
    ran = []

    @idempotent(idem, key="{n}", keep=(Exception,))
    def f(n: int) -> None:
        ran.append(n)
        raise error

    with pytest.raises(type(error)) as first:
        f(1)
    assert first.value is error
    with pytest.raises(type(error)) as again:
        f(1)
    assert ran == [1]
    assert again.value is not error
    assert type(again.value) is type(error)
    assert same(again.value.args, error.args)
    assert str(again.value) == str(error)
    for name in ("code", "detail", "amount", "at", "b", "errno", "filename", "start", "object", "name", "path"):
        assert same(getattr(again.value, name, None), getattr(error, name, None))


def test_notes_are_kept_and_the_cause_is_not(idem: Engine) -> None:
    """What was added to the exception with add_note belongs to it."""

    @idempotent(idem, key="{n}", keep=(ValueError,))
    def f(n: int) -> None:
        error = ValueError("x")
        error.add_note("while charging")
        raise error from LookupError("inner")

    with pytest.raises(ValueError, match="x") as first:
        f(1)
    assert isinstance(first.value.__cause__, LookupError)
    with pytest.raises(ValueError, match="x") as again:
        f(1)
    assert again.value.__notes__ == ["while charging"]
    assert again.value.__cause__ is None


@pytest.mark.parametrize("error", [Holding(object()), Exception(object()), Looped()], ids=repr)
def test_one_that_cannot_be_rebuilt_is_raised_as_a_recorded_failure(idem: Engine, error: Exception) -> None:
    """OUT-05: with the type's name and the text, in the tree of errors; the function does not run again."""
    ran = []

    @idempotent(idem, key="{n}", keep=(Exception,))
    def f(n: int) -> None:
        ran.append(n)
        raise error

    with pytest.raises(type(error)) as first:
        f(1)
    assert first.value is error
    with pytest.raises(RecordedFailure) as again:
        f(1)
    assert isinstance(again.value, CallerError)
    assert again.value.type_name == f"{type(error).__module__}:{type(error).__qualname__}"
    assert again.value.message in str(again.value)
    assert ran == [1]
    pickled = pickle.loads(pickle.dumps(again.value))  # noqa: S301 - our own bytes
    for twin in (copy.copy(again.value), pickled):
        assert (twin.type_name, twin.message, str(twin)) == (
            again.value.type_name,
            again.value.message,
            str(again.value),
        )


class Code(enum.StrEnum):
    NO_FUNDS = "51"


@pytest.mark.parametrize(("code", "told"), [(Code.NO_FUNDS, True), (Code.NO_FUNDS.value, False)])
def test_an_exception_that_will_not_be_rebuilt_is_announced_when_it_is_kept(
    bench: Bench, code: str, told: bool
) -> None:
    """A member of an enum names a class of the caller's, so it is not written; the first run says so."""

    @idempotent(bench.idem, key="{n}", keep=(CardDeclined,))
    def f(n: int) -> None:
        raise CardDeclined(code, detail="no funds")  # type: ignore[arg-type]

    with pytest.raises(CardDeclined):
        f(1)
    reasons = [event.reason for event in bench.events if isinstance(event, events.AnswerNotKept)]
    assert reasons == (["not_rebuildable"] if told else [])
    with pytest.raises(RecordedFailure if told else CardDeclined):
        f(1)


def test_an_exception_without_a_text_is_kept_too(idem: Engine) -> None:
    """Its own `__str__` raising is nothing that recording may stumble over."""

    @idempotent(idem, key="{n}", keep=(Unprintable,))
    def f(n: int) -> None:
        raise Unprintable(n)

    for _ in range(2):
        with pytest.raises(Unprintable):
            f(1)


def test_an_exception_whose_class_is_not_allowed_any_more_is_a_recorded_failure() -> None:
    """A class is looked up among those that `keep` names, and nowhere else."""
    body = encode_exception(CardDeclined(51, detail="x"))
    assert isinstance(decode_exception(body, (ValueError,)), RecordedFailure)
    assert isinstance(decode_exception(body, (Exception,)), CardDeclined)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\x80\x04.",
        b'{"type":"builtins:ValueError","message":"x","args":[{"$":["Path","/"]}],"state":{}}',
        b'{"type":"builtins:ValueError","message":"x","args":[{"$":[1]}],"state":{}}',
        b'{"type":"builtins:ValueError","message":"x","args":[],"state":{"__class__":"x"}}',
    ],
)
def test_a_damaged_exception_is_unreadable(body: bytes) -> None:
    """SEC-02: nothing in the store can name a class or run code that `keep` does not allow."""
    with pytest.raises(RecordUnreadable):
        decode_exception(body, (Exception,))


def test_by_default_an_exception_releases_the_key_for_the_same_request(idem: Engine) -> None:
    """OUT-03: the default runs again; the docs say what that means after an effect."""
    ran = []
    broken = RuntimeError("mail")

    @idempotent(idem, key="{order}")
    def charge(order: str, amount: int) -> str:
        ran.append(amount)
        if len(ran) == 1:
            raise broken from LookupError("dns")
        return "receipt"

    with pytest.raises(RuntimeError) as caught:
        charge("1", 10)
    assert caught.value is broken
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(FingerprintMismatch):
        charge("1", 10_000)
    assert charge("1", 10) == "receipt"
    assert ran == [10, 10]


def test_a_kept_exception_runs_once(idem: Engine) -> None:
    """OUT-03: `keep=` makes the failure the answer."""
    ran = []

    @idempotent(idem, key="{n}", keep=(CardDeclined,))
    def f(n: int) -> None:
        ran.append(n)
        raise Expired(54, detail="old")

    for _ in range(3):
        with pytest.raises(Expired, match="declined: old"):
            f(1)
    assert ran == [1]


def test_an_exception_named_in_unknown_leaves_it_to_an_operator(bench: Bench) -> None:
    """OUT-03: a provider's timeout says nothing about the charge, so nothing runs until it is resolved."""
    ran = []

    @idempotent(bench.idem, key="{n}", unknown=(TimeoutError,), namespace="charge", scope="t")
    def f(n: int) -> str:
        ran.append(n)
        if len(ran) == 1:
            raise TimeoutError
        return "done"

    with pytest.raises(TimeoutError):
        f(1)
    with pytest.raises(OutcomeUnknown):
        f(1)
    assert len(bench.seen(events.OutcomeInDoubt)) == 1
    identity = identify("t", "charge", "1")
    record = bench.idem.get(identity)
    assert bench.idem.resolve(identity, record.token, "not_done")  # type: ignore[union-attr]
    assert f(1) == "done"
    assert ran == [1, 1]


class BankError(Exception):
    pass


class BankTimeout(BankError):
    pass


class SlowBank(BankTimeout):
    pass


@pytest.mark.parametrize(
    ("keep", "unknown", "raised", "again"),
    [
        ((BankError,), (BankTimeout,), BankTimeout, OutcomeUnknown),
        ((BankError,), (BankTimeout,), SlowBank, OutcomeUnknown),
        ((BankError,), (BankTimeout,), BankError, BankError),
        ((BankTimeout,), (Exception,), SlowBank, BankTimeout),
        ((BankTimeout,), (Exception,), BankError, OutcomeUnknown),
        ((BankError, SlowBank), (BankTimeout,), SlowBank, SlowBank),
    ],
)
@pytest.mark.parametrize("on_abandoned", ["rerun", "block"])
def test_the_class_nearer_to_what_was_raised_decides_between_keep_and_unknown(
    idem: Engine,
    keep: tuple[type[Exception], ...],
    unknown: tuple[type[Exception], ...],
    raised: type[Exception],
    again: type[Exception],
    on_abandoned: Literal["rerun", "block"],
) -> None:
    """OUT-03: a timeout that is one of the bank's errors is no final answer; a batch reports it likewise."""
    ran = []

    @idempotent(idem, key="{n}", keep=keep, unknown=unknown, on_abandoned=on_abandoned)
    def f(n: int) -> None:
        ran.append(n)
        raise raised

    with pytest.raises(raised):
        f(1)
    with pytest.raises(again):
        f(1)
    assert ran == [1]
    status = run_batch(f, [2]).items[0].status
    assert (status == "unknown") is (again is OutcomeUnknown)


def test_one_class_is_not_kept_and_unknown_at_once() -> None:
    """Neither reading is what was meant for sure."""
    with pytest.raises(ConfigurationError, match="both name BankTimeout"):
        Policy(keep=(BankError, BankTimeout), unknown=(BankTimeout,))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_base_exceptions_settle_and_pass_as_the_same_object(idem: Engine, kind: type[BaseException]) -> None:
    """LEA-07: the record does not wait for its lease; the next call runs at once."""
    ran, raised = [], kind()

    @idempotent(idem, key="{n}", keep=(Exception,))
    def f(n: int) -> str:
        ran.append(n)
        if len(ran) == 1:
            raise raised
        return "done"

    with pytest.raises(kind) as caught:
        f(1)
    assert caught.value is raised
    assert f(1) == "done"


def test_under_block_any_exception_leaves_the_outcome_unknown(idem: Engine) -> None:
    """OUT-03: `on_abandoned="block"` runs nothing again by itself."""

    @idempotent(idem, key="{n}", on_abandoned="block")
    def f(n: int) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        f(1)
    with pytest.raises(OutcomeUnknown):
        f(1)


JOB = """
import sys
from idemcore import Engine
from idemcore_function import idempotent

idem = Engine(sys.argv[1])
idem.create_schema()

class Declined(Exception):
    pass

@idempotent(idem, key="{n}", namespace="job.pay", keep=(Declined,))
def pay(n):
    raise Declined

def main():
    try:
        pay(1)
    except Declined as error:
        print(type(error).__name__)

if __name__ == "__main__":
    main()
"""


def test_a_kept_exception_is_known_however_its_script_was_started(tmp_path: Path) -> None:
    """OUT-02: as a file, as a module, and imported by another program."""
    (tmp_path / "job.py").write_text(JOB)
    url = f"sqlite:///{tmp_path / 'records.db'}"
    for started in (["job.py", url], ["-c", "import job; job.main()", url], ["-m", "job", url]):
        ended = subprocess.run(
            [sys.executable, *started], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.stdout, ended.returncode) == ("Declined\n", 0), ended.stderr
