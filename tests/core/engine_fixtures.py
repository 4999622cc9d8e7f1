"""An engine whose clock stands still until a test moves it, and that remembers its events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from idemcore import Attempt, Engine, MemoryStore, Policy, Replay
from idemcore.errors import StoreUnavailable
from idemcore.events import Event
from idemcore.identity import Identity
from idemcore.stores.base import Store
from idemcore.testing.clock import FakeClock

TEN_EUROS = "v1.exact:" + "10" * 32
ELEVEN_EUROS = "v1.exact:" + "11" * 32

BLOCK = Policy(on_abandoned="block")
SHORT = Policy(lease=timedelta(seconds=6), max_hold=timedelta(seconds=60))


@dataclass
class Bench:
    """An engine on a bench: `begin` with defaults, the clock, the events so far."""

    idem: Engine
    clock: FakeClock
    events: list[Event] = field(default_factory=list)

    def begin(self, **changes: Any) -> Attempt | Replay:
        asked: dict[str, Any] = {"scope": "t", "operation": "charge", "key": "k", "fingerprint": TEN_EUROS}
        return self.idem.begin(**{**asked, **changes})

    def attempt(self, **changes: Any) -> Attempt:
        begun = self.begin(**changes)
        assert isinstance(begun, Attempt)
        return begun

    def replay(self, **changes: Any) -> Replay:
        begun = self.begin(**changes)
        assert isinstance(begun, Replay)
        return begun

    def seen(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if type(event) is kind]


def make_bench(store: Store | None = None, policy: Policy | None = None) -> Bench:
    clock = FakeClock()
    events: list[Event] = []
    store = store if store is not None else MemoryStore(clock=clock, wall_clock=clock)
    if isinstance(store, Faulty):
        store.inner = MemoryStore(clock=clock, wall_clock=clock)
    idem = Engine(store, policy=policy, observers=[events.append], monotonic=clock, sleep=clock.sleep)
    idem.keeper._rouse = lambda: True  # type: ignore[method-assign]  # tests step it; a thread would race them
    return Bench(idem, clock, events)


class Faulty:
    """A store whose verbs fail when a test says so, before or after their work is done."""

    def __init__(self) -> None:
        self.inner: Any = None
        self.fail: dict[str, list[tuple[str, BaseException]]] = {}
        self.calls: list[str] = []

    def break_next(
        self, verb: str, *, times: int = 1, after: bool = False, error: BaseException | None = None
    ) -> None:
        fault = ("after" if after else "before", error if error is not None else StoreUnavailable("down"))
        self.fail.setdefault(verb, []).extend([fault] * times)

    def add_listener(self, listener: Callable[[Identity], None]) -> None:
        self.inner.add_listener(listener)  # no verb, so it does not count

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        inner = getattr(self.inner, verb)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(verb)
            faults = self.fail.get(verb)
            when, error = faults.pop(0) if faults else ("", None)
            if when == "before" and error is not None:
                raise error
            result = inner(*args, **kwargs)
            if when == "after" and error is not None:
                raise error
            return result

        return call
