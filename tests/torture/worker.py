"""What one worker does: a slot of time at a time, the key of that slot, as all the others at that moment."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

from sqlalchemy import Engine as Database
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from idemcore import Attempt, Engine, IdempotencyError, Policy, Replay
from idemcore.identity import SINGLE_TENANT
from idemcore.record import Record, Tombstone
from idemcore.stores.base import Store
from tests.torture.backends import BACKENDS, Place
from tests.torture.history import Diary, digest
from tests.torture.witness import Witness

SLOT: Final = 0.02
LEASE: Final = 1.0
"""Seconds that a claim stands in a run of processes: a busy machine holds each of them up for a while."""

OPERATION: Final = "charge"

STEPS: Final = [
    *(
        f"{when} {verb}"
        for verb in ("reserve", "take_over", "complete", "release")
        for when in ("before", "after")
    ),
    "before effect",
    "after effect",
    "before commit",
    "after commit",
]


class Killed(BaseException):
    """Stands for SIGKILL where workers are threads: whoever catches it forgets everything at once."""


@dataclass(frozen=True)
class Shift:
    """When and where a worker works.

    Attributes:
        fault: put between the store and its witness: a bug that the checker must find.
        lease: seconds that a claim stands, from which every other time follows.
    """

    place: Place
    folder: Path
    seed: int
    started: float
    ends: float
    fault: Callable[[Store], Store] | None = None
    lease: float = LEASE

    @property
    def threads(self) -> bool:
        return BACKENDS[self.place.backend].threads

    def open(self, ahead: float = 0.0) -> Store:
        store = self.place.open(ahead)
        return store if self.fault is None else self.fault(store)

    def engine(self, store: Witness) -> Engine:
        """Over this store, with the usual policy."""
        lease = timedelta(seconds=self.lease)
        policy = Policy(lease=lease, max_hold=3 * lease, retention=timedelta(minutes=45))
        return Engine(store, policy=policy, observers=[])


def policy_of(key: str, usual: Policy) -> Policy:
    """Each key has its kind."""
    match Random(key).choices(["usual", "short", "block"], [55, 25, 20])[0]:
        case "short":
            return replace(usual, retention=usual.lease, max_hold=1.5 * usual.lease)
        case "block":
            return replace(usual, on_abandoned="block")
        case _:
            return usual


def key_of(seed: int, slot: int) -> str:
    """What all workers go for in this slot: often a new key, else one of a while ago."""
    chance = Random(f"{seed} {slot}")
    back = 0 if chance.random() < 0.4 else 1 + int(chance.expovariate(1 / 60))
    return f"k{max(slot - back, 0)}"


def work(shift: Shift, name: str) -> None:
    """Until the shift ends, or a signal ends the worker."""
    chance = Random(f"{shift.seed} {name}")
    diary = Diary(shift.folder, name)
    store = Witness(shift.open(chance.uniform(-0.5, 0.5)), diary, _strikes(shift, diary, chance))
    idem = shift.engine(store)
    till = Till(shift, store, diary)
    while (now := time.monotonic()) < shift.ends:
        slot = int((now - shift.started) / SLOT) + 1
        time.sleep(max(shift.started + slot * SLOT - now, 0))
        if chance.random() < 0.7:
            store.fate = chance.choice(STEPS) if chance.random() < 0.07 else ""
            try:
                call(idem, store, diary, chance, key_of(shift.seed, slot), till)
            except Killed:
                continue
    idem.close()
    till.close()
    if not shift.threads:
        store.close()
    diary.close()


class Till:
    """Orders in the records' own database: the effect that shares a transaction with its record."""

    def __init__(self, shift: Shift, store: Witness, diary: Diary) -> None:
        self._store, self._diary = store, diary
        self._sql: Database | None = None
        if BACKENDS[shift.place.backend].orders:
            self._sql = create_engine(shift.place.url, poolclass=NullPool)

    def takes(self) -> bool:
        """Whether there is a database to have orders in."""
        return self._sql is not None

    def order(self, attempt: Attempt, token: str) -> bool:
        """Whether the order is in, as far as one can tell."""
        if self._sql is None:
            return False
        key, claim = attempt.identity.key, attempt._claim
        facts = {"token": token, "fingerprint": claim.fingerprint, "retention": claim.retention}
        number = self._diary.write("sent", name="join", key=key, **facts)
        try:
            with self._sql.begin() as connection:
                connection.execute(
                    text("INSERT INTO orders VALUES (:key, :token)"), {"key": key, "token": token}
                )
                attempt.join(connection)
                self._store.reach("before commit")
            self._store.reach("after commit")
        except (IdempotencyError, SQLAlchemyError) as error:
            self._diary.write("came", of=number, error=type(error).__name__)
            return False
        self._diary.write("came", of=number, result=True)
        return True

    def close(self) -> None:
        if self._sql is not None:
            self._sql.dispose()


def call(
    idem: Engine, store: Witness, diary: Diary, chance: Random, key: str, till: Till | None = None
) -> None:
    """One request from its beginning to its answer."""
    fingerprint = f"v1.t:{key}-{'a' if chance.random() < 0.9 else 'b'}"
    number = diary.write("invoked", key=key, fingerprint=fingerprint)

    def answered(answer: str, **facts: object) -> None:
        diary.write("answered", of=number, answer=answer, **facts)

    def replayed(replay: Replay, answer: str) -> None:
        answered(answer, body=json.loads(replay.outcome.body))

    try:
        begun = idem.begin(
            scope=SINGLE_TENANT,
            operation=OPERATION,
            key=key,
            fingerprint=fingerprint,
            policy=policy_of(key, idem.policy),
        )
    except IdempotencyError as error:
        answered(error.code)
        return
    if isinstance(begun, Replay):
        replayed(begun, "replay")
        return
    token = digest(begun._claim.token)
    if till is not None and till.takes() and chance.random() < 0.15:
        instead = order(begun, till, token)
    else:
        if chance.random() < 0.01:
            oversleep(idem, store, diary, chance, key)
        instead = run(begun, store, diary, chance, token)
    if isinstance(instead, Replay):
        replayed(instead, "given")
    elif instead:
        answered("ran", token=token)


def oversleep(idem: Engine, store: Witness, diary: Diary, chance: Random, key: str) -> None:
    """Past all renewals; and meanwhile the same is asked for again, which takes over where that may be."""
    time.sleep(policy_of(key, idem.policy).max_hold.total_seconds() + 0.1)
    call(idem, store, diary, chance, key)


def run(attempt: Attempt, store: Witness, diary: Diary, chance: Random, token: str) -> Replay | bool:
    """The work and its end. True: the caller has an answer; False: it is never answered."""
    store.reach("before effect")
    ending = chance.choices(
        ["complete", "tombstone", "release", "forget", "unknown", "fail", "abandon"], [70, 4, 7, 5, 4, 5, 5]
    )[0]
    time.sleep(chance.uniform(0, 0.01))
    if ending not in ("release", "forget"):  # these say that nothing was done
        diary.effect(attempt.identity.key, token, attempt.fingerprint)
    store.reach("after effect")
    body = {"token": token, "fingerprint": attempt.fingerprint, "key": attempt.identity.key}
    match ending:
        case "complete":
            return attempt.complete(json.dumps(body).encode()) or True
        case "tombstone":
            return attempt.tombstone("too_large") or True
        case "release":
            attempt.release()
        case "forget":
            attempt.forget()
        case "unknown":
            attempt.unknown("timeout")
        case "fail":
            attempt.fail(RuntimeError())
        case _:
            return False
    return True


def order(attempt: Attempt, till: Till, token: str) -> Replay | bool:
    """The work and its record in one transaction; where it failed, release() may say so in any case."""
    if not till.order(attempt, token):
        attempt.release()
        return True
    body = {"token": token, "fingerprint": attempt.fingerprint, "key": attempt.identity.key}
    return attempt.complete(json.dumps(body).encode()) or True


def sweep(shift: Shift, name: str) -> None:
    """A sweeper, never resting for long."""
    diary, store = Diary(shift.folder, name), shift.open()
    while time.monotonic() < shift.ends:
        number = diary.write("sent", name="sweep", key="")
        try:
            swept = store.sweep(5)
        except IdempotencyError as error:
            diary.write("came", of=number, error=type(error).__name__)
        else:
            diary.write("came", of=number, result=swept.removed)
        time.sleep(0.03)
    diary.close()


def operate(shift: Shift, name: str) -> None:
    """An operator who settles what waits for one, by guessing; and frees a key now and then."""
    chance = Random(f"{shift.seed} {name}")
    diary = Diary(shift.folder, name)
    store = Witness(shift.open(), diary, lambda witness: None)
    while time.monotonic() < shift.ends:
        try:
            for found in store.find(only_open=True, limit=200):
                record = found.record
                if not isinstance(record, Record) or chance.random() < 0.7:
                    continue
                verdict = chance.choice(["not_done", "not_done", "done", "forget"])
                if verdict == "forget":
                    store.forget(found.identity, record.token)
                else:
                    to = Tombstone("resolved_as_done") if verdict == "done" else "released"
                    store.resolve(found.identity, record.token, to, 2700.0)  # type: ignore[arg-type] # one of the two
        except IdempotencyError:
            pass
        time.sleep(0.2)
    diary.close()


def _strikes(shift: Shift, diary: Diary, chance: Random) -> Callable[[Witness], None]:
    def strike(witness: Witness) -> None:
        stops = chance.random() < 0.3
        diary.write("deed", name="stop" if stops else "kill")
        if not shift.threads:
            os.kill(os.getpid(), signal.SIGSTOP if stops else signal.SIGKILL)
        elif stops:
            witness.stop(chance.uniform(0, 2.5 * shift.lease))
        else:
            raise Killed

    return strike
