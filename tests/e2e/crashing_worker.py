# ruff: noqa: T201 - the worker tells its test by standard output
"""A worker process that makes one payment, and dies or stops at the point it is told; run by test_crashes.

    python crashing_worker.py DATABASE LEDGER POINT POLICY

The effect is a line appended to the ledger file, which is outside of the library and of its database. Points:
`reserve` (killed once the claim is written, before `begin` returns), `handler` (before the effect),
`effect` (after it), `complete` (once the outcome is written, before `complete` returns), `stop` (after the
effect, waits on standard input), `none`. What the caller got is printed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from idemcore import Engine, IdempotencyError, Policy, Replay, fingerprint
from idemcore.stores.sql import SQLAlchemyStore


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def charge(ledger: Path, child_key: str) -> None:
    with ledger.open("a") as file:
        file.write(f"charged {child_key}\n")
        file.flush()
        os.fsync(file.fileno())


def dies_after(verb: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        verb(*args)
        die()

    return call


def main(database: str, ledger: str, point: str, policy: str, amount: str = "10") -> None:
    store = SQLAlchemyStore(f"sqlite:///{database}")
    if point in ("reserve", "complete"):
        setattr(store, point, dies_after(getattr(store, point)))
    idem = Engine(store, policy=Policy(on_abandoned="block" if policy == "block" else "rerun"))
    try:
        begun = idem.begin(
            scope="t", operation="charge", key="k", fingerprint=fingerprint({"amount": int(amount)})
        )
    except IdempotencyError as error:
        print(type(error).__name__)
        return
    if isinstance(begun, Replay):
        print("replay", begun.outcome.body.decode())
        return
    with begun as attempt:
        if point == "handler":
            die()
        charge(Path(ledger), attempt.child_key("charge"))
        if point == "effect":
            die()
        if point == "stop":
            print("stopping", flush=True)
            sys.stdin.readline()
        own = f"attempt {attempt.number}"
        winner = attempt.complete(own.encode())
    if winner is None:
        print("ran", own)
    else:
        print("given", winner.outcome.body.decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
