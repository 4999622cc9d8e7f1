"""A store that writes down every verb before and after it, and that strikes its process at a chosen step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Stored, Superseded, Tombstone, UnreadableRecord
from idemcore.stores.base import CallersTransaction, ReleaseTo, Store, Verdict, verdict_token
from tests.torture.history import Diary, digest


class Witness:
    """Between an engine and its store.

    Attributes:
        fate: the step at which `strike` is called, such as "after reserve"; for the next call only.
    """

    def __init__(self, store: Store, diary: Diary, strike: Callable[[Witness], None]) -> None:
        self._store = store
        self._diary = diary
        self._strike = strike
        self._mine = threading.get_ident()
        self._awake = threading.Event()
        self._awake.set()
        self.fate = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def reach(self, step: str) -> None:
        """Strikes if it is time."""
        if step == self.fate and threading.get_ident() == self._mine:  # never in the thread that renews
            self.fate = ""
            self._strike(self)

    def stop(self, seconds: float) -> None:
        """What SIGSTOP is to a process: its other threads do nothing either, and renew nothing."""
        self._awake.clear()
        time.sleep(seconds)
        self._awake.set()

    def reserve(self, claim: Claim) -> Record | UnreadableRecord | None:
        def told(record: Record | UnreadableRecord | None) -> str:
            if record is None:
                return "inserted"
            mine = isinstance(record, Record) and record.token == claim.token
            return "own" if mine and record.state is State.CLAIMED and record.lease_stands else "found"  # type: ignore[union-attr] # `mine` says so

        return self._see("reserve", claim, lambda: self._store.reserve(claim), told)

    def take_over(self, seen_token: bytes, claim: Claim) -> bool:
        return self._see(
            "take_over", claim, lambda: self._store.take_over(seen_token, claim), seen=digest(seen_token)
        )

    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> Stored | Superseded:
        kind = "answer" if isinstance(outcome, Answer) else "tombstone"
        return self._see(
            "complete",
            claim,
            lambda: self._store.complete(claim, outcome),
            lambda result: type(result).__name__.lower(),
            outcome=kind,
        )

    def release(self, claim: Claim, to: ReleaseTo, reason: str = "") -> bool:
        return self._see("release", claim, lambda: self._store.release(claim, to, reason), to=to)

    def renew(self, claim: Claim) -> float | None:
        return self._see("renew", claim, lambda: self._store.renew(claim))

    def resolve(self, identity: Identity, seen_token: bytes, to: Verdict, retention: float) -> bool:
        verdict = to if to == "released" else type(to).__name__.lower()
        facts = {"token": digest(verdict_token(seen_token)), "seen": digest(seen_token), "to": verdict}
        number = self._diary.write("sent", name="resolve", key=identity.key, retention=retention, **facts)
        return self._told(
            number, lambda: self._store.resolve(identity, seen_token, to, retention), lambda done: done
        )

    def forget(self, identity: Identity, seen_token: bytes) -> bool:
        number = self._diary.write("sent", name="forget", key=identity.key, seen=digest(seen_token))
        return self._told(number, lambda: self._store.forget(identity, seen_token), lambda done: done)

    def join(self, place: object, claim: Claim, joined: CallersTransaction | None = None) -> Any:
        """Written down by the worker, with its commit: a mark counts from there on."""
        return self._store.join(place, claim, joined)  # type: ignore[attr-defined] # asked of such stores only

    def _see(
        self,
        name: str,
        claim: Claim,
        act: Callable[[], Any],
        told: Callable[[Any], Any] = lambda result: result,
        **facts: str,
    ) -> Any:
        self._awake.wait()
        number = self._diary.write(
            "sent",
            name=name,
            key=claim.identity.key,
            token=digest(claim.token),
            fingerprint=claim.fingerprint,
            attempt=claim.attempt,
            hold=claim.hold,
            lease=claim.lease,
            max_hold=claim.max_hold,
            retention=claim.retention,
            **facts,
        )
        self.reach(f"before {name}")
        return self._told(number, act, told, then=f"after {name}")

    def _told(self, number: int, act: Callable[[], Any], told: Callable[[Any], Any], *, then: str = "") -> Any:
        try:
            result = act()
        except Exception as error:
            self._diary.write("came", of=number, error=type(error).__name__)
            raise
        self.reach(then)  # dies before anybody learns what was done
        self._diary.write("came", of=number, result=told(result))
        return result
