"""Contract tests with real threads: whatever interleaves, one caller is granted each claim."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from idemcore.identity import Identity
from idemcore.record import Claim, State, Stored
from idemcore.testing.contract.case import ANSWER, LEASE, LONG_AFTER, ContractCase, claim

_THREADS: Final = 20
_KEYS: Final = 5

T = TypeVar("T")


def race(act: Callable[[Claim], T], identity: Identity, attempt: int = 1) -> list[tuple[Claim, T]]:
    """What each thread got, every one with a token of its own; an error in any of them is raised here."""
    barrier = threading.Barrier(_THREADS)

    def run(number: int) -> tuple[Claim, T]:
        mine = claim(number.to_bytes(16, "big"), identity, attempt=attempt)
        barrier.wait()
        return mine, act(mine)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(run, range(_THREADS)))


def keys() -> list[Identity]:
    """One identity for each round."""
    return [Identity("tenant", "race", str(number)) for number in range(_KEYS)]


class RaceContract(ContractCase):
    """Twenty threads behind a barrier, a few keys each."""

    def test_of_many_reserves_at_once_one_inserts(self) -> None:
        """RAC-01, RAC-03: the others are told of the winner's claim, and none of an error."""
        for identity in keys():
            results = race(self.store.reserve, identity)
            (winner,) = [made for made, record in results if record is None]
            assert self.record(identity).token == winner.token

    def test_of_many_take_overs_at_once_one_succeeds(self) -> None:
        """A lease that is over is taken over by one of those who saw it end."""
        for identity in keys():
            seen = self.abandon(claim(b"first", identity))

            def act(mine: Claim, seen: Claim = seen) -> bool:
                return self.store.take_over(seen.token, mine)

            results = race(act, identity, 2)
            (winner,) = [made for made, granted in results if granted]
            assert self.record(identity).token == winner.token

    def test_of_many_reserves_past_retention_one_inserts(self) -> None:
        """A forgettable record is replaced by one caller, however many find it."""
        for identity in keys():
            self.store.complete(self.begin(claim(b"first", identity)), ANSWER)
            self.age(identity, LONG_AFTER)
            results = race(self.store.reserve, identity)
            assert len([made for made, record in results if record is None]) == 1

    def test_reserve_and_sweep_at_once_lose_no_claim(self) -> None:
        """A sweeper that saw the dead record does not remove the claim that replaced it."""
        for identity in keys():
            self.store.complete(self.begin(claim(b"first", identity)), ANSWER)
            self.age(identity, LONG_AFTER)

            def act(mine: Claim) -> None:
                if mine.token[-1] % 2:
                    self.store.sweep(10)
                else:
                    self.store.reserve(mine)

            race(act, identity)
            assert self.record(identity).state is State.CLAIMED

    def test_a_late_owner_racing_the_next_one_leaves_one_outcome(self) -> None:
        """Completing late against a take-over: either it came first or it is superseded, never both."""
        for identity in keys():
            late = self.abandon(claim(b"first", identity), LEASE + 1)

            def act(mine: Claim, late: Claim = late) -> bool:
                if mine.token[-1] == 0:
                    return self.store.complete(late, ANSWER) == Stored()
                return self.store.take_over(late.token, mine)

            granted = [made for made, yes in race(act, identity, 2) if yes]
            assert len(granted) == 1
            record = self.record(identity)
            assert record.state is (State.COMPLETED if granted[0].token[-1] == 0 else State.CLAIMED)
