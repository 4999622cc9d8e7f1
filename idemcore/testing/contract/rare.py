"""Contract tests that not every back end can stage: committed records, and records that cannot be read."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

from idemcore.identity import Identity
from idemcore.record import Answer, Record, State, Stored, Superseded, Swept, Tombstone, UnreadableRecord
from idemcore.stores.base import FAILED_AFTER_COMMIT
from idemcore.testing.contract.case import (
    ANSWER,
    LEASE,
    LONG_AFTER,
    ONE,
    OTHER_ANSWER,
    RELEASES,
    RETENTION,
    TEN_EUROS,
    TOO_LARGE,
    TWO,
    A,
    B,
    ContractCase,
    claim,
)


class CommittedContract(ContractCase):
    """Committed, answer pending: the work is done for good; its owner, or an operator, says what it led to."""

    def commit(self, identity: Identity) -> None:
        """Turns a claimed record into a committed one, as a caller's transaction would."""
        raise NotImplementedError

    def committed(self) -> None:
        """A committed record of A's whose lease is over."""
        self.begin(claim(A))
        self.commit(ONE)
        self.age(ONE, LEASE + 1)

    def test_a_committed_record_is_reported_as_such(self) -> None:
        """Its lease counts: until it is over, the owner may still bring the answer."""
        self.begin(claim(A))
        self.commit(ONE)
        record = self.store.reserve(claim(B))
        assert isinstance(record, Record)
        assert (record.state, record.token, record.lease_stands) == (State.COMMITTED, A, True)

    def test_a_committed_record_is_completed_by_its_owner_only(self) -> None:
        """The mark becomes the answer; another run of the same request never writes it."""
        self.committed()
        assert isinstance(self.store.complete(claim(B), OTHER_ANSWER), Superseded)
        assert self.store.complete(claim(A), ANSWER) == Stored()
        assert (self.record().state, self.record().answer) == (State.COMPLETED, ANSWER)

    def test_a_committed_record_is_never_taken_over(self) -> None:
        """A second run would commit the business rows twice."""
        self.committed()
        assert not self.store.take_over(A, claim(B, attempt=2))

    def test_a_committed_record_is_ended_by_a_verdict_once_its_lease_is_over(self) -> None:
        """Its run died before it recorded the answer: an operator gives it, or says that there is none."""
        verdicts: tuple[Answer | Tombstone, ...] = (ANSWER, TOO_LARGE)
        for verdict in verdicts:
            identity = ONE._replace(key=repr(verdict))
            self.begin(claim(A, identity, attempt=2))
            self.commit(identity)
            assert not self.store.resolve(identity, A, verdict, RETENTION)
            self.age(identity, LEASE + 1)
            assert not self.store.resolve(identity, B, verdict, RETENTION)
            assert self.record(identity).state is State.COMMITTED
            for _ in range(2):
                assert self.store.resolve(identity, A, verdict, RETENTION)
            record = self.record(identity)
            assert verdict in (record.answer, Tombstone(record.reason))
            assert (record.attempt, record.fingerprint, record.hold) == (2, TEN_EUROS, False)
            assert record.token not in (A, B)
            assert record.completed_at is not None
            assert isinstance(self.store.complete(claim(A, identity, attempt=2), OTHER_ANSWER), Superseded)

    def test_a_committed_record_is_never_resolved_as_not_done(self) -> None:
        """Its rows are committed, so this would be a second run of work that is done; nothing is touched."""
        self.begin(claim(A))
        self.commit(ONE)
        for age in (0, LEASE + 1, LONG_AFTER):
            self.age(ONE, age)
            assert not self.store.resolve(ONE, A, "released", RETENTION)
            assert (self.record().state, self.record().token) == (State.COMMITTED, A)

    def test_a_verdict_on_a_committed_record_is_kept_for_the_whole_retention(self) -> None:
        """From now on, though the record itself was past it."""
        self.committed()
        self.age(ONE, LONG_AFTER)
        assert self.store.resolve(ONE, A, TOO_LARGE, RETENTION)
        self.age(ONE, RETENTION - 100)
        assert not self.record().past_retention

    def test_a_committed_record_is_open_once_its_lease_is_over(self) -> None:
        """Nobody has ended its run; while the lease stands, its owner may be about to."""
        self.begin(claim(A))
        self.commit(ONE)
        assert self.store.find(only_open=True, limit=9) == []
        self.age(ONE, LEASE + 1)
        assert [found.identity for found in self.store.find(only_open=True, limit=9)] == [ONE]
        assert self.store.find(only_open=True, state=State.CLAIMED, limit=9) == []
        assert self.store.resolve(ONE, A, ANSWER, RETENTION)
        assert self.store.find(only_open=True, limit=9) == []

    def test_releasing_a_committed_record_leaves_a_tombstone(self) -> None:
        """A handler that fails after its commit has still done its work, whatever it asks for."""
        for to in RELEASES:
            made = claim(A, ONE._replace(key=to))
            self.begin(made)
            self.commit(made.identity)
            assert not self.store.release(made._replace(token=B), to)
            for _ in range(2):
                assert self.store.release(made, to, "why")
            record = self.record(made.identity)
            assert (record.state, record.reason) == (State.TOMBSTONE, FAILED_AFTER_COMMIT)
            assert record.hold is False
            assert record.completed_at is not None

    def test_a_committed_record_is_renewed_by_its_owner(self) -> None:
        """A slow answer after the commit keeps its lease."""
        self.committed()
        assert self.store.renew(claim(B)) is None
        assert self.store.renew(claim(A)) is not None
        assert self.record().lease_stands

    def test_a_committed_record_past_retention_is_swept_by_name(self) -> None:
        """Its rows are there and nobody ended it: after this, a retry would make them again."""
        self.committed()
        self.age(ONE, LONG_AFTER)
        assert self.store.sweep(10) == Swept(finished=0, abandoned=1, lost=(ONE,))


class UnreadableContract(ContractCase):
    """A record that cannot be understood protects its operation all the same."""

    def damages(self) -> list[str]:
        """The kinds of damage that `damage` can do."""
        raise NotImplementedError

    def damage(self, identity: Identity, kind: str) -> None:
        """Makes a record of any state unreadable; its times, hold and token stay readable."""
        raise NotImplementedError

    def test_an_unreadable_record_is_reported_and_left_alone(self) -> None:
        """Neither run, nor replayed, nor overwritten, past retention too; no verb raises."""
        for kind in self.damages():
            for state in (State.COMPLETED, State.CLAIMED, State.RELEASED):
                for age in (0.0,) if self.expires_by_itself else (0.0, LONG_AFTER):
                    self.leave_alone(ONE._replace(key=f"{kind} {state} {age}"), kind, state, age)

    def leave_alone(self, identity: Identity, kind: str, state: State, age: float) -> None:
        """Tries every verb on a damaged record."""
        mine, other = claim(A, identity), claim(B, identity, attempt=2)
        self.begin(mine)
        if state is State.COMPLETED:
            self.store.complete(mine, ANSWER)
        elif state is State.RELEASED:
            self.store.release(mine, "released")
        self.damage(identity, kind)
        self.age(identity, age)
        before = self.store.get(identity)
        assert isinstance(before, UnreadableRecord), kind
        assert self.store.reserve(other) == before
        assert self.store.take_over(A, other) is False
        for made in (mine, other):
            assert self.store.complete(made, OTHER_ANSWER) == Superseded(before)
        for to in RELEASES:
            assert self.store.release(mine, to) is False
        assert self.store.renew(mine) is None
        assert self.store.resolve(identity, A, "released", RETENTION) is False
        assert self.store.get(identity) == before

    def test_unreadable_records_are_found(self) -> None:
        """Operators see them in their list."""
        for kind in self.damages():
            self.begin(claim(A, ONE._replace(key=kind)))
            self.damage(ONE._replace(key=kind), kind)
        assert len(self.states()) == len(self.damages())
        assert set(self.states().values()) == {None}
        assert len(self.store.find(only_open=True, limit=99)) == len(self.damages())

    def test_unreadable_records_go_at_the_end_of_their_retention(self) -> None:
        """The sweeper alone removes them; until then they stay."""
        kinds = self.damages()
        for kind in kinds:
            identity = TWO._replace(key=kind)
            self.store.complete(self.begin(claim(A, identity)), ANSWER)
            self.damage(identity, kind)
        assert self.store.sweep(100) == Swept(0, 0)
        for kind in kinds:
            self.age(TWO._replace(key=kind), LONG_AFTER)
        assert self.store.sweep(100).removed == (0 if self.expires_by_itself else len(kinds))
        assert self.states() == {}
