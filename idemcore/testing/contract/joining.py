"""Contract tests for stores that join a caller's transaction: the mark comes with its commit or not at all."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from idemcore.errors import ConfigurationError
from idemcore.identity import Identity
from idemcore.record import Claim, Record, State, Stored
from idemcore.stores.base import JoiningStore
from idemcore.testing.contract.case import (
    ANSWER,
    LEASE,
    MAX_HOLD,
    ONE,
    RELEASES,
    RETENTION,
    TOO_LARGE,
    TWO,
    A,
    B,
    claim,
)
from idemcore.testing.contract.races import keys, race
from idemcore.testing.contract.rare import CommittedContract


class Place(Protocol):
    """Where a caller's transaction is: a session or a connection."""

    def commit(self) -> None:
        """Ends the transaction; its rows stay."""
        ...

    def rollback(self) -> None:
        """Ends the transaction; nothing of it stays."""
        ...

    def close(self) -> None:
        """Gives the connection back."""
        ...


class JoiningContract(CommittedContract):
    """The caller's own transaction."""

    def open_place(self) -> Place:
        """Somewhere on the store's database where a transaction of the caller's can be; none is open yet."""
        raise NotImplementedError

    @property
    def joining(self) -> JoiningStore:
        """The store under test, as one that joins."""
        assert isinstance(self.store, JoiningStore)
        return self.store

    @contextmanager
    def place(self) -> Iterator[Place]:
        """One that is closed at the end."""
        place = self.open_place()
        try:
            yield place
        finally:
            place.close()

    def commit(self, identity: Identity) -> None:
        """Joins and commits, as its owner."""
        assert self.commits(claim(A, identity))

    def commits(self, mine: Claim) -> bool:
        """Whether a whole transaction with this claim's mark was committed."""
        with self.place() as place:
            joined = isinstance(self.joining.join(place, mine), str) is False
            if joined:
                place.commit()
            return joined

    def refusal(self, mine: Claim) -> str:
        """What the store says instead of joining."""
        with self.place() as place:
            result = self.joining.join(place, mine)
            assert isinstance(result, str)
            return result

    def test_the_mark_comes_with_the_commit(self) -> None:
        """Others see a claim until then, and a committed record from then on: the claim's, in all else."""
        mine = self.begin(claim(A, attempt=2))
        before = self.record()
        with self.place() as place:
            transaction = self.joining.join(place, mine)
            assert not isinstance(transaction, str)
            assert (self.record().state, transaction.is_active) == (State.CLAIMED, True)
            place.commit()
            assert transaction.is_active is False
        after = self.record()
        assert after.state is State.COMMITTED
        assert (after.token, after.attempt, after.fingerprint) == (A, 2, before.fingerprint)
        assert after.lease_stands

    def test_a_rollback_takes_the_mark_along(self) -> None:
        """The claim stands as before: it is renewed, joined again, and completed."""
        mine = self.begin(claim(A))
        with self.place() as place:
            transaction = self.joining.join(place, mine)
            assert not isinstance(transaction, str)
            place.rollback()
            assert transaction.is_active is False
            assert self.record().state is State.CLAIMED
            assert self.store.renew(mine) is not None
            assert not isinstance(self.joining.join(place, mine), str)
            place.commit()
        assert self.store.complete(mine, ANSWER) == Stored()

    def test_joining_clears_hold(self) -> None:
        """That the work was done is known: a committed record on hold could never be settled or forgotten."""
        assert self.commits(self.begin(claim(A, hold=True)))
        assert (self.record().state, self.record().hold) == (State.COMMITTED, False)

    def test_a_joined_record_is_kept_for_its_retention(self) -> None:
        """Counted from the transaction, even where the claim was nearly past it."""
        mine = self.abandon(claim(A), MAX_HOLD + RETENTION - 60)
        assert self.commits(mine)
        self.age(ONE, RETENTION - 60)
        assert self.record().past_retention is False

    def test_a_lease_that_is_over_does_not_matter_while_nobody_took_it(self) -> None:
        """The work is still the only one, so it is let in; from then on nobody takes over."""
        assert self.commits(self.abandon(claim(A)))
        assert not self.store.take_over(A, claim(B, attempt=2))

    def test_a_late_owner_joins_nothing(self) -> None:
        """LEA-03: the one that took over is not disturbed, running, committed or done."""
        late, winner = self.abandon(claim(A)), claim(B, attempt=2)
        assert self.store.take_over(A, winner)
        assert self.refusal(late) == "lost"
        assert (self.record().token, self.record().state) == (B, State.CLAIMED)
        assert self.commits(winner)
        assert self.refusal(late) == "lost"
        self.store.complete(winner, ANSWER)
        assert self.refusal(late) == "lost"

    def test_only_a_claimed_record_is_joined(self) -> None:
        """A claim that was given up, settled or forgotten is not the caller's, whatever the token."""
        for to in RELEASES:
            mine = self.begin(claim(A, ONE._replace(key=to)))
            self.store.release(mine, to)
            assert self.refusal(mine) == "lost"
        for outcome in (ANSWER, TOO_LARGE):
            mine = self.begin(claim(A, TWO._replace(key=repr(outcome))))
            self.store.complete(mine, outcome)
            assert self.refusal(mine) == "lost"

    def test_a_second_transaction_is_told_of_the_first(self) -> None:
        """Its commit had arrived and its acknowledgement had not: the rows are there, and come once."""
        mine = self.begin(claim(A))
        assert self.commits(mine)
        assert self.refusal(mine) == "already"
        self.age(ONE, LEASE + 1)
        assert self.refusal(mine) == "already"

    def test_joining_an_open_transaction_again_does_nothing(self) -> None:
        """Two parts of a program may both see to it."""
        mine = self.begin(claim(A))
        with self.place() as place:
            first = self.joining.join(place, mine)
            assert not isinstance(first, str)
            assert self.joining.join(place, mine, first) is first
            place.commit()
        assert self.record().state is State.COMMITTED

    def test_two_transactions_at_once_are_refused(self) -> None:
        """The second one would wait for the first, which waits for its caller."""
        mine = self.begin(claim(A))
        with self.place() as place, self.place() as other:
            first = self.joining.join(place, mine)
            assert not isinstance(first, str)
            try:
                self.joining.join(other, mine, first)
            except ConfigurationError:
                pass
            else:
                raise AssertionError("it was let in")

    def test_joining_against_a_take_over_lets_one_of_them_in(self) -> None:
        """RAC-03: threads of both kinds; whoever comes first keeps the others out."""
        for identity in keys():
            late = self.abandon(claim(b"first", identity))
            granted = [made for made, yes in race(self._join_or_take(late), identity, 2) if yes]
            assert len(granted) == 1
            record = self.store.get(identity)
            assert isinstance(record, Record)
            joined = granted[0].token[-1] % _KINDS == 0
            assert record.state is (State.COMMITTED if joined else State.CLAIMED)
            assert record.token == (late.token if joined else granted[0].token)

    def _join_or_take(self, late: Claim) -> Callable[[Claim], bool]:
        def act(mine: Claim) -> bool:
            if mine.token[-1] % _KINDS == 0:
                return self.commits(late)
            return self.store.take_over(late.token, mine)

        return act


_KINDS: Final = 7
"""One in so many threads joins, with the late owner's own token; the others take over."""
