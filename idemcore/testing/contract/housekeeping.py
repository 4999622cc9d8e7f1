"""Contract tests of get, find, sweep and the set-up verbs."""

# ruff: noqa: S101 - assert is how a test asks

from __future__ import annotations

from idemcore.identity import Identity
from idemcore.record import Record, State, Swept
from idemcore.testing.contract.case import (
    ANSWER,
    LEASE,
    LONG_AFTER,
    MAX_HOLD,
    ONE,
    RETENTION,
    TOO_LARGE,
    TWO,
    A,
    B,
    ContractCase,
    claim,
)


class HousekeepingContract(ContractCase):
    """Records can be looked at without being touched, and dead ones go."""

    def names(self, count: int) -> list[Identity]:
        """So many identities."""
        return [Identity("tenant", "sweep", f"key-{number:03}") for number in range(count)]

    def test_get_reports_without_touching(self) -> None:
        """Looking neither renews nor removes, forgettable records included."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        self.age(ONE, LONG_AFTER)
        for _ in range(2):
            assert self.is_dead()
        assert self.store.get(TWO) is None

    def test_find_filters(self) -> None:
        """By scope, operation and state, in any combination, at most so many."""
        old, new = Identity("a", "charge", "1"), Identity("a", "refund", "2")
        other = Identity("b", "charge", "3")
        self.begin(claim(A, old))
        self.age(old, 10)
        self.store.complete(self.begin(claim(A, new)), ANSWER)
        self.begin(claim(A, other))
        assert {found.identity for found in self.store.find(limit=10)} == {old, new, other}
        assert {found.identity for found in self.store.find(scope="a", limit=10)} == {old, new}
        assert len(self.store.find(scope="a", limit=1)) == 1
        assert [found.identity for found in self.store.find(operation="charge", scope="b", limit=9)] == [other]
        assert [found.identity for found in self.store.find(state=State.COMPLETED, limit=9)] == [new]
        assert self.store.find(scope="c", limit=9) == []

    def test_find_leaves_the_bytes_of_answers_where_they_are(self) -> None:
        """A list of large answers takes little room; the size says what `get` would bring."""
        self.store.complete(self.begin(claim(A)), ANSWER)
        (found,) = self.store.find(limit=9)
        assert (found.kind, found.body_bytes) == (ANSWER.kind, len(ANSWER.body))
        assert isinstance(found.record, Record)
        assert found.record.answer is None
        assert found.record.state is State.COMPLETED
        assert found.record.token == A
        assert ONE.key not in repr(found)

    def test_find_walks_in_pages(self) -> None:
        """Each record once, in one order; one that goes between two pages disturbs nothing."""
        names = self.names(7)
        for identity in names:
            self.store.complete(self.begin(claim(A, identity)), ANSWER)
        whole = [found.identity for found in self.store.find(limit=100)]
        assert set(whole) == set(names)
        walked = []
        page = self.store.find(limit=3)
        while page:
            walked += [found.identity for found in page]
            assert len(page) == (3 if len(walked) < 7 else 1)
            if len(walked) == 3:
                assert self.store.forget(walked[-1], A)
            page = self.store.find(limit=3, after=page[-1])
        assert walked == whole

    def test_find_shows_what_is_open(self) -> None:
        """Unknown outcomes, and claims whose lease is over whether on hold or not; nothing that has ended."""
        died, held, doubtful, running, done, freed = self.names(6)
        self.abandon(claim(A, died))
        self.abandon(claim(A, held, hold=True))
        self.store.release(self.begin(claim(A, doubtful)), "unknown", "timeout")
        self.store.complete(self.begin(claim(A, done)), ANSWER)
        self.store.release(self.begin(claim(A, freed)), "released")
        self.begin(claim(A, running, lease=LONG_AFTER, max_hold=LONG_AFTER))
        found = {found.identity for found in self.store.find(only_open=True, limit=9)}
        assert found == {died, held, doubtful}
        (only,) = self.store.find(only_open=True, state=State.UNKNOWN, limit=9)
        assert only.identity == doubtful

    def test_sweep_removes_what_is_past_retention_and_counts_it(self) -> None:
        """SWE-01: finished and abandoned records apart; what is live stays; a second sweep finds nothing."""
        live = [Identity("tenant", "live", str(number)) for number in range(5)]
        for identity in live:
            self.begin(claim(A, identity, retention=10 * LONG_AFTER))
        gone = self.names(9)
        for identity in gone[:3]:
            self.store.complete(self.begin(claim(A, identity)), ANSWER)
        for identity in gone[3:5]:
            self.store.complete(self.begin(claim(A, identity)), TOO_LARGE)
        self.store.release(self.begin(claim(A, gone[5])), "released")
        for identity in gone[6:]:
            self.begin(claim(A, identity))
        for identity in gone:
            if not self.record(identity).past_retention:
                self.age(identity, LONG_AFTER)
        swept = self.store.sweep(100)
        assert swept[:2] == (0 if self.expires_by_itself else 6, 3)
        assert sorted(swept.lost) == gone[6:]  # each an effect that may have happened, so it has to have a name
        assert set(self.states()) == set(live)
        assert self.store.sweep(100) == Swept(finished=0, abandoned=0)

    def test_sweep_works_in_bounded_batches(self) -> None:
        """SWE-02: no batch removes more than it was allowed; the last one is not full."""
        for identity in self.names(7):
            self.begin(claim(A, identity))
        for identity in self.names(7):
            if not self.record(identity).past_retention:
                self.age(identity, LONG_AFTER)
        assert [self.store.sweep(3).removed for _ in range(4)] == [3, 3, 1, 0]

    def test_sweep_leaves_what_waits_for_an_operator(self) -> None:
        """Unknown outcomes and abandoned claims on hold outlive their retention; a verdict lets them go."""
        self.store.release(self.begin(claim(A)), "unknown", "timeout")
        self.begin(claim(A, TWO, hold=True))
        for identity in (ONE, TWO):
            if not self.record(identity).past_retention:
                self.age(identity, LONG_AFTER)
        assert self.store.sweep(100) == Swept(0, 0)
        assert self.states() == {ONE: State.UNKNOWN, TWO: State.CLAIMED}
        assert self.store.resolve(ONE, A, "released", 10)
        self.age(ONE, LONG_AFTER)
        assert self.store.sweep(100) == Swept(0 if self.expires_by_itself else 1, 0)
        assert self.states() == {TWO: State.CLAIMED}

    def test_sweep_leaves_a_standing_lease(self) -> None:
        """A claim that was taken over or renewed after its time is live again."""
        last_moment = MAX_HOLD + RETENTION - LEASE
        self.abandon(claim(A), last_moment if self.expires_by_itself else LONG_AFTER)
        assert self.store.take_over(A, claim(B, attempt=2))
        assert self.store.sweep(100) == Swept(0, 0)
        self.age(ONE, LEASE + 1)
        assert self.store.sweep(100) == Swept(0, 0)

    def test_the_schema_may_be_made_again(self) -> None:
        """Repeating it keeps the records, and the check that follows is content."""
        self.begin(claim(A))
        self.store.create_schema()
        self.store.check()
        assert self.record().token == A
