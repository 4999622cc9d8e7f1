"""The checker: from a history alone, whatever cannot have happened under the rules. Pure; knows no store.

Every verb took effect at some moment between `sent` and `came`; one that never came back, at any moment
after `sent`, or never. A finding is only what no choice of these moments explains, so there are no false
ones, as long as the store's clock runs like the history's (`tolerance` seconds of difference are allowed).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.torture.history import Call, Effect, History, Order, Verb

IN_FLIGHT: Final = 20.0
"""Seconds in which a statement whose sender has died is carried out or given up by the server."""

_REFUSALS: Final = frozenset(
    (
        "request_in_progress",
        "idempotency_key_reuse",
        "response_not_replayable",
        "outcome_unknown",
        "store_unavailable",
    )
)


@dataclass(frozen=True)
class Finding:
    """Something that cannot have happened under the rules."""

    rule: str
    key: str
    text: str


def check(history: History, *, tolerance: float = 0.05) -> list[Finding]:
    """All that is wrong with a run, key by key."""
    keys: defaultdict[str, _Key] = defaultdict(lambda: _Key(tolerance))
    for verb in history.verbs:
        if verb.name != "sweep":
            keys[verb.key].verbs.append(verb)
    for call in history.calls:
        keys[call.key].calls.append(call)
    for effect in history.effects:
        keys[effect.key].effects.append(effect)
    for order in history.orders:
        keys[order.key].orders.append(order)
    return [
        Finding(rule, key, text) for key, one in sorted(keys.items()) for rule, text in one.prepare().findings()
    ]


@dataclass
class _Key:
    """What happened under one key."""

    tolerance: float
    verbs: list[Verb] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)

    def prepare(self) -> _Key:
        self.claims = [verb for verb in self.verbs if verb.name in ("reserve", "take_over")]
        self.grants = [verb for verb in self.claims if _granted(verb)]
        self.completes = [verb for verb in self.verbs if verb.name == "complete"]
        self.stored = [verb for verb in self.completes if verb.result == "stored"]
        # How each claim was written, or may have been.
        self.by_token = {verb.token: verb for verb in self.claims if verb.result not in ("found", False)}
        self.joins = {verb.token: verb for verb in self.verbs if verb.name == "join"}
        self.first_complete: dict[str, float] = {}
        for verb in self.completes:
            self.first_complete.setdefault(verb.token, verb.sent)
        return self

    def findings(self) -> Iterator[tuple[str, str]]:
        yield from self.effects_and_claims()
        yield from self.takeovers()
        yield from self.insertions()
        yield from self.standing_leases()
        yield from self.outcomes()
        yield from self.unknowns()
        yield from self.joined()
        yield from self.answers()

    def effects_and_claims(self) -> Iterator[tuple[str, str]]:
        """At most one effect for a granted claim, none without one, and for no other request than its own."""
        seen: set[str] = set()
        for effect in self.effects:
            granted = [
                grant for grant in self.grants if grant.token == effect.token and _came(grant) <= effect.at
            ]
            if not granted:
                yield "effect without a claim", f"of {effect.token} at {effect.at:.3f}"
            elif granted[0].fingerprint != effect.fingerprint:
                yield "effect of another request", f"of {effect.token} at {effect.at:.3f}"
            if effect.token in seen:
                yield "two effects of one claim", f"of {effect.token} at {effect.at:.3f}"
            seen.add(effect.token)

    def takeovers(self) -> Iterator[tuple[str, str]]:
        """Only of what was seen, once, with the same request, and when its lease is over or it was released."""
        taken: dict[str, Verb] = {}
        for grant in self.grants:
            if grant.name != "take_over" or grant.seen == grant.token:
                continue
            text = f"{grant.token} took over {grant.seen} at {grant.sent:.3f}-{_came(grant):.3f}"
            if grant.seen in taken and taken[grant.seen].token != grant.token:
                yield "two takeovers of one claim", f"{text}; so did {taken[grant.seen].token}"
            taken[grant.seen] = grant
            verdict = self.verdict(grant)
            before = self.by_token.get(verdict.seen if verdict else grant.seen)
            if before is None:
                yield "takeover of nobody's claim", text
                continue
            if before.fingerprint != grant.fingerprint:
                yield "takeover by another request", text
            if grant.attempt != before.attempt + 1:
                yield "takeover counts wrong", f"{text}: attempt {grant.attempt} after {before.attempt}"
            if verdict or self.released(grant.seen, _came(grant)):
                continue
            if before.hold or grant.hold:
                yield "takeover of what waits for an operator", text
            if self.lease_end(before.token, known_by=_came(grant)) > _came(grant) + self.tolerance:
                yield "takeover of a standing claim", text

    def insertions(self) -> Iterator[tuple[str, str]]:
        """A key is claimed anew only if what stood there may be gone: freed, or past its retention."""
        for grant in self.grants:
            if grant.name != "reserve":
                continue
            for before in self.grants:
                if _came(before) < grant.sent and before.token != grant.token and not self.gone(before, grant):
                    yield (
                        "claimed anew over a record",
                        f"{grant.token} at {grant.sent:.3f}-{_came(grant):.3f} over {before.token}",
                    )

    def standing_leases(self) -> Iterator[tuple[str, str]]:
        """No two claims stand at one moment."""
        for place, one in enumerate(self.grants):
            for other in self.grants[place + 1 :]:
                if one.token == other.token:
                    continue
                moment = max(_came(one), _came(other))
                if all(
                    self.lease_end(token, known_by=moment) > moment + self.tolerance
                    and not self.settled(token, moment)
                    for token in (one.token, other.token)
                ):
                    yield "two standing leases", f"{one.token} and {other.token} at {moment:.3f}"

    def outcomes(self) -> Iterator[tuple[str, str]]:
        """What was stored stays: nothing runs after it, and no other outcome follows, until it may be gone."""
        for stored in self.stored:
            for later in (*self.grants, *self.stored):
                if later.sent <= _came(stored) or later.token == stored.token:
                    continue
                if not self.expired(stored, _came(later)) and not self.freed(stored.sent, _came(later)):
                    rule = (
                        "second outcome" if later.name == "complete" else "claimed after an outcome was stored"
                    )
                    yield rule, f"{later.token} at {later.sent:.3f} after {stored.token} at {_came(stored):.3f}"

    def unknowns(self) -> Iterator[tuple[str, str]]:
        """What is unknown waits for an operator, or for its own run's outcome."""
        for left in self.verbs:
            if left.name != "release" or left.to != "unknown" or left.result is not True:
                continue
            for grant in self.grants:
                if grant.sent <= _came(left):
                    continue
                if not any(
                    verb.name in ("resolve", "forget", "complete") and left.sent <= verb.sent <= _came(grant)
                    for verb in self.verbs
                ):
                    yield "ran while unknown", f"{grant.token} after {left.token} at {_came(left):.3f}"

    def joined(self) -> Iterator[tuple[str, str]]:
        """A row that was committed with its mark is there, is the only one, and nothing runs after it."""
        committed = [self.joins[order.token] for order in self.orders if order.token in self.joins]
        if len(committed) != len(self.orders):
            yield "order without a claim", f"{len(self.orders) - len(committed)} of them"
        if len({join.token for join in committed}) != len(committed):
            yield "two orders of one claim", f"of {[join.token for join in committed]}"
        for join in self.joins.values():
            if join.result is True and join not in committed:
                yield "lost order", f"of {join.token}, committed at {_came(join):.3f}"
        for join in committed:
            for other in committed:
                if join.sent < other.sent and not self.over(join, other):
                    yield "two orders", f"{join.token} at {join.sent:.3f}, {other.token} at {other.sent:.3f}"
            for grant in self.grants:
                if grant.sent > _came(join) and join.result is True and not self.over(join, grant):
                    yield "claimed after its work was committed", f"{grant.token} after {join.token}"

    def over(self, join: Verb, later: Verb) -> bool:
        """Whether the record of a commit may be gone."""
        until = later.sent + IN_FLIGHT if later.came is None else later.came
        return join.sent + join.retention <= until + self.tolerance or self.freed(join.sent, until)

    def answers(self) -> Iterator[tuple[str, str]]:
        """Callers get what was stored and nothing else, and wait for no longer than a claim may stand."""
        for call in self.calls:
            if call.answered is None:
                continue
            text = f"{call.process} at {call.invoked:.3f}-{call.answered:.3f}: {call.answer}"
            if call.answer in ("replay", "given"):
                yield from self.replayed(call, text)
            elif call.answer == "request_in_progress" and not self.may_stand(call):
                yield "stuck", text
            elif call.answer == "response_not_replayable" and not any(
                (verb.outcome == "tombstone" or verb.to == "tombstone" or verb.name == "join")
                and verb.sent <= call.answered
                for verb in self.verbs
            ):
                yield "told done, and nobody said so", text
            elif call.answer != "ran" and call.answer not in _REFUSALS:
                yield "surprise", text
            yield from self.kept(call, text)

    def replayed(self, call: Call, text: str) -> Iterator[tuple[str, str]]:
        body = call.body or {}
        token = body.get("token", "")
        made = [verb for verb in self.completes if verb.token == token and verb.sent <= (call.answered or 0)]
        if body.get("key") != call.key or not made:
            yield "replay of what nobody stored", text
            return
        if body.get("fingerprint") != call.fingerprint:
            yield "replay to another request", text
        for later in self.stored:
            since = later.sent > max(verb.came if verb.came is not None else float("inf") for verb in made)
            if since and later.token != token and _came(later) < call.invoked:
                yield "stale replay", f"{text}, and {later.token} was stored since"

    def kept(self, call: Call, text: str) -> Iterator[tuple[str, str]]:
        """Between an outcome and its end every caller finds it."""
        for stored in self.stored:
            answered = call.answered or 0.0
            if call.invoked <= _came(stored) or self.expired(stored, answered):
                continue
            if self.freed(stored.sent, answered):
                continue
            same = call.fingerprint == stored.fingerprint
            expected = "response_not_replayable" if stored.outcome == "tombstone" else "replay"
            allowed = (expected if same else "idempotency_key_reuse", "store_unavailable")
            if call.answer not in allowed or (
                call.answer == "replay" and (call.body or {}).get("token") != stored.token
            ):
                yield "lost outcome", f"{text}, and {stored.token} was stored at {_came(stored):.3f}"

    def gone(self, before: Verb, grant: Verb) -> bool:
        until = _came(grant)
        if self.freed(before.sent, until):
            return True
        if before.hold and not any(
            verb.name in ("complete", "release", "resolve") and before.sent <= verb.sent <= until
            for verb in self.verbs
        ):
            return False
        ends = [before.sent + before.max_hold + before.retention]
        ends += [
            self.first_complete[stored.token] + stored.retention
            for stored in self.stored
            if stored.sent >= before.sent and _came(stored) < grant.sent
        ]
        return until + self.tolerance >= max(ends)

    def freed(self, since: float, until: float) -> bool:
        """Whether somebody may have removed the record: its own run, or an operator."""
        return any(
            (verb.name == "forget" or (verb.name == "release" and verb.to == "deleted"))
            and since <= verb.sent <= until
            for verb in self.verbs
        )

    def expired(self, stored: Verb, moment: float) -> bool:
        return self.first_complete[stored.token] + stored.retention <= moment + self.tolerance

    def released(self, token: str, until: float) -> bool:
        return any(
            verb.name == "release" and verb.token == token and verb.to == "released" and verb.sent <= until
            for verb in self.verbs
        )

    def settled(self, token: str, until: float) -> bool:
        return any(
            verb.name in ("complete", "release") and verb.token == token and verb.sent <= until
            for verb in self.verbs
        )

    def verdict(self, grant: Verb) -> Verb | None:
        """The operator's "not done" whose token was taken over."""
        for verb in self.verbs:
            if verb.name == "resolve" and verb.token == grant.seen and verb.sent <= _came(grant):
                return verb
        return None

    def lease_end(self, token: str, *, known_by: float) -> float:
        """The earliest end that the lease of a claim can have, by what its owner was told until then."""
        ends = [0.0]
        for verb in self.verbs:
            if verb.token != token or verb.came is None or verb.came > known_by:
                continue
            if _granted(verb):
                ends.append(verb.sent + verb.lease)
            elif verb.name == "renew" and verb.result is not None:
                ends.append(verb.sent + verb.result)
        return max(ends)

    def may_stand(self, call: Call) -> bool:
        """Whether, when the call was made, a lease may have stood or a transaction have locked the record."""
        answered = call.answered or 0
        for join in self.joins.values():
            ended = join.sent + IN_FLIGHT if join.came is None else join.came
            if join.sent <= answered and ended >= call.invoked:
                return True
        return any(
            _may_hold(verb)
            and verb.sent <= answered
            and (verb.came if verb.came is not None and not verb.error else verb.sent + IN_FLIGHT)
            + verb.lease
            + self.tolerance
            >= call.invoked
            for verb in self.verbs
        )


def _granted(verb: Verb) -> bool:
    if verb.name == "reserve":
        return verb.result in ("inserted", "own")
    return verb.name == "take_over" and verb.result is True


def _may_hold(verb: Verb) -> bool:
    """Whether a lease may stand by it."""
    if verb.came is None or verb.error:
        return verb.name in ("reserve", "take_over", "renew")
    return _granted(verb) or (verb.name == "renew" and verb.result is not None)


def _came(verb: Verb) -> float:
    """Of a verb that is known to have come back."""
    return float("inf") if verb.came is None else verb.came
