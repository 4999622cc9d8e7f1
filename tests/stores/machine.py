"""Random walks over the verbs: a real store and the model must say the same at every step."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from idemcore.identity import Identity
from idemcore.record import Answer, Claim, Record, State, Superseded, Tombstone
from idemcore.stores.base import ReleaseTo, Store, Verdict, verdict_token
from tests.stores.model import ModelStore

WALKS = min(2_000, settings.default.max_examples)  # 100, and the long run has more
"""How many a store takes that needs no server; one that does takes a quarter."""

IDENTITIES = (Identity("s", "op", "k"), Identity("s", "op", "K"))
TOKENS = (b"A" * 16, b"B" * 16, b"C" * 16)
SEEN = (*TOKENS, *(verdict_token(token) for token in TOKENS))

# Ends of leases and retentions fall half an hour from any time that the walk can reach: a database whose
# clock runs on while the test does may be minutes ahead of the model, and still says the same.
LEASES = ((105e3, 215e3, 503e3), (65e3, 125e3, 303e3))  # lease, max_hold, retention
ADVANCES = (10e3, 70e3, 110e3, 220e3, 720e3)

identities = st.sampled_from(IDENTITIES)
tokens = st.sampled_from(TOKENS)
seen_tokens = st.sampled_from(SEEN)
outcomes = st.sampled_from(
    (Answer("http", b"{}", b"one"), Answer("returned", b"", b""), Tombstone("too_large"), Tombstone("lost"))
)


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    lease, max_hold, retention = draw(st.sampled_from(LEASES))
    return Claim(
        draw(identities),
        draw(st.sampled_from(("v1.a:1", "v1.a:2"))),
        draw(tokens),
        draw(st.integers(1, 3)),
        lease,
        max_hold,
        retention,
        draw(st.booleans()),
    )


class StoreWalk(RuleBasedStateMachine):
    """Subclasses say which store, and how its time moves."""

    forgets_early = False
    """Whether forgettable records may go without being swept."""

    tolerance = 0.001
    """Seconds that the store's clock may be ahead of the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ModelStore()
        self.store = self.fresh_store()

    def fresh_store(self) -> Store:
        raise NotImplementedError

    def move_time(self, seconds: float) -> None:
        raise NotImplementedError

    def mark_committed(self, identity: Identity) -> None:
        """A committed record is done for certain: nothing about it waits for an operator."""
        raise NotImplementedError

    @rule(claim=claims())
    def reserve(self, claim: Claim) -> None:
        self.same(self.store.reserve(claim), self.model.reserve(claim))

    @rule(seen=seen_tokens, claim=claims())
    def take_over(self, seen: bytes, claim: Claim) -> None:
        assert self.store.take_over(seen, claim) == self.model.take_over(seen, claim)

    @rule(claim=claims(), outcome=outcomes)
    def complete(self, claim: Claim, outcome: Answer | Tombstone) -> None:
        expected, got = self.model.complete(claim, outcome), self.store.complete(claim, outcome)
        assert type(got) is type(expected)
        if isinstance(expected, Superseded) and isinstance(got, Superseded):
            self.same(got.record, expected.record)

    @rule(claim=claims(), to=st.sampled_from(("released", "unknown", "deleted")))
    def release(self, claim: Claim, to: ReleaseTo) -> None:
        assert self.store.release(claim, to, "why") == self.model.release(claim, to, "why")

    @rule(claim=claims())
    def renew(self, claim: Claim) -> None:
        got, expected = self.store.renew(claim), self.model.renew(claim)
        assert (got is None) == (expected is None)
        if got is not None and expected is not None:
            assert abs(got - expected) <= self.tolerance

    @rule(identity=identities, seen=seen_tokens, to=outcomes | st.just("released"))
    def resolve(self, identity: Identity, seen: bytes, to: Verdict) -> None:
        got, expected = (store.resolve(identity, seen, to, 303e3) for store in (self.store, self.model))
        assert got == expected

    @rule(identity=identities, seen=seen_tokens)
    def forget(self, identity: Identity, seen: bytes) -> None:
        assert self.store.forget(identity, seen) == self.model.forget(identity, seen)

    @rule(identity=identities)
    def commit(self, identity: Identity) -> None:
        row = self.model.rows.get(identity)
        if row is not None and row.state is State.CLAIMED and not self.model.forgettable(identity):
            self.model.rows[identity] = replace(row, state=State.COMMITTED, hold=False)
            self.mark_committed(identity)

    @rule(limit=st.integers(1, 3))
    def sweep(self, limit: int) -> None:
        dead = [identity for identity in self.model.rows if self.model.forgettable(identity)]
        unended = (State.CLAIMED, State.COMMITTED)
        lost = [identity for identity in dead if self.model.rows[identity].state in unended]
        swept = self.store.sweep(limit)
        assert swept.removed == min(limit, len(dead))
        if limit >= len(dead):
            assert set(swept.lost) == set(lost)
        self.forget_what_is_gone(dead)

    @rule(seconds=st.sampled_from(ADVANCES))
    def advance(self, seconds: float) -> None:
        self.model.now += seconds
        self.move_time(seconds)

    @invariant()
    def the_records_are_the_same(self) -> None:
        if self.forgets_early:
            self.forget_what_is_gone(list(self.model.rows))
        for identity in IDENTITIES:
            self.same(self.store.get(identity), self.model.report(identity))
        listed = self.store.find(limit=10)
        assert {found.identity for found in listed} == self.model.rows.keys()
        for found in listed:
            expected = self.model.report(found.identity)
            assert expected is not None
            answer = expected.answer
            assert found.body_bytes == (None if answer is None else len(answer.body))
            self.same(found.record, expected._replace(answer=None))
        waiting = {found.identity for found in self.store.find(only_open=True, limit=10)}
        assert waiting == {identity for identity in self.model.rows if self.model.open(identity)}

    def forget_what_is_gone(self, candidates: list[Identity]) -> None:
        for identity in candidates:
            if self.model.forgettable(identity) and self.store.get(identity) is None:
                del self.model.rows[identity]

    def same(self, got: object, expected: Record | None) -> None:
        if got is None or expected is None:
            assert got is expected
            return
        assert isinstance(got, Record)
        timeless = {"age": 0.0, "lease_left": 0.0, "completed_at": None}
        assert got._replace(**timeless) == expected._replace(**timeless)
        assert got.lease_stands == expected.lease_stands
        assert abs(got.age - expected.age) <= self.tolerance
        # Below zero it says that the lease is over, and no more.
        assert abs(max(got.lease_left, 0.0) - max(expected.lease_left, 0.0)) <= self.tolerance
        assert (got.completed_at is None) == (expected.completed_at is None)


def walk(kind: type[StoreWalk], walks: int, *, steps: int) -> None:
    """So many walks, however long one takes."""
    patient = settings(
        max_examples=walks, stateful_step_count=steps, suppress_health_check=[HealthCheck.too_slow]
    )
    run_state_machine_as_test(kind, settings=patient)
