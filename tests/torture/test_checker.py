"""The checker on histories written by hand: the right ones pass, and each wrong one is called by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.torture.checker import check
from tests.torture.history import Call, Effect, History, Order, Verb

Line = Verb | Call | Effect | Order

LEASE, RETENTION = 1.0, 100.0


def verb(name: str, sent: float, token: str, **facts: object) -> Verb:
    made = Verb("w", name, "k", sent, sent + 0.1, token, fingerprint="fp", attempt=1, lease=LEASE, max_hold=3.0)
    return replace(made, retention=RETENTION, **facts)  # type: ignore[arg-type] # each is a field's


def claimed(sent: float, token: str, **facts: object) -> Verb:
    return verb("reserve", sent, token, result="inserted", **facts)


def taken(sent: float, token: str, seen: str, **facts: object) -> Verb:
    return verb("take_over", sent, token, **{"seen": seen, "attempt": 2, "result": True, **facts})


def stored(sent: float, token: str, **facts: object) -> Verb:
    return verb("complete", sent, token, **{"outcome": "answer", "result": "stored", **facts})


def released(sent: float, token: str, to: str = "released") -> Verb:
    return verb("release", sent, token, to=to, result=True)


def effect(at: float, token: str, fingerprint: str = "fp") -> Effect:
    return Effect("k", token, fingerprint, at)


def call(invoked: float, answer: str, token: str = "", fingerprint: str = "fp") -> Call:
    body = {"token": token, "fingerprint": "fp", "key": "k"} if answer in ("replay", "given") else None
    return Call("w", "k", fingerprint, invoked, invoked + 0.1, answer, token, body)


def joined(sent: float, token: str, **facts: object) -> Verb:
    return verb("join", sent, token, **{"result": True, **facts})


def rules(*lines: Line) -> set[str]:
    history = History(
        [line for line in lines if isinstance(line, Verb)],
        [line for line in lines if isinstance(line, Call)],
        [line for line in lines if isinstance(line, Effect)],
        [line for line in lines if isinstance(line, Order)],
    )
    return {finding.rule for finding in check(history)}


RIGHT = {
    "claim, effect, outcome, replay": [
        *(claimed(0, "A"), effect(0.2, "A"), stored(0.3, "A"), call(0.5, "replay", "A")),
        call(0.7, "idempotency_key_reuse", fingerprint="other"),
    ],
    "the lease was over": [claimed(0, "A"), effect(0.2, "A"), taken(1.2, "B", "A"), effect(1.4, "B")],
    "it may just have been over": [claimed(0, "A"), taken(0.95, "B", "A")],
    "released": [claimed(0, "A"), released(0.2, "A"), taken(0.4, "B", "A")],
    "freed, and claimed by another request": [
        *(claimed(0, "A"), released(0.2, "A", "deleted"), claimed(0.4, "B", fingerprint="other")),
    ],
    "freed by one who died on it": [
        claimed(0, "A"),
        replace(released(0.2, "A", "deleted"), came=None, result=None),
        claimed(0.4, "B"),
    ],
    "past its retention": [claimed(0, "A"), stored(0.2, "A"), claimed(104, "B"), call(104, "ran", "B")],
    "an operator said not done": [
        claimed(0, "A", hold=True),
        verb("resolve", 2, "V", seen="A", to="released", result=True),
        taken(3, "B", "V", hold=True),
    ],
    "a late run's outcome is refused": [
        *(claimed(0, "A"), taken(1.2, "B", "A"), stored(1.4, "B"), stored(1.6, "A", result="superseded")),
        call(1.8, "replay", "B"),
    ],
    "renewed, and the lease over later": [
        claimed(0, "A"),
        verb("renew", 0.5, "A", result=1.0),
        taken(1.6, "B", "A"),
    ],
    "committed, and killed before its record": [
        *(claimed(0, "A"), joined(0.2, "A", result=None), Order("k", "A"), call(2, "response_not_replayable")),
    ],
    "rolled back, and run again": [
        *(
            claimed(0, "A"),
            joined(0.2, "A", result=None),
            taken(1.2, "B", "A"),
            joined(1.4, "B"),
            Order("k", "B"),
        ),
    ],
    "in progress for as long as a transaction is open that joined": [
        *(
            claimed(0, "A"),
            replace(joined(0.2, "A"), came=3.0),
            Order("k", "A"),
            call(2, "request_in_progress"),
        ),
    ],
    "in progress for as long as a dead one's claim may stand": [
        replace(claimed(0, "A"), came=None, result=None),
        call(2, "request_in_progress"),
    ],
}

WRONG = {
    "effect without a claim": [effect(1, "A")],
    "two effects of one claim": [claimed(0, "A"), effect(0.2, "A"), effect(0.3, "A")],
    "effect of another request": [claimed(0, "A"), effect(0.2, "A", "other")],
    "takeover of a standing claim": [claimed(0, "A"), taken(0.5, "B", "A")],
    "two standing leases": [claimed(0, "A"), verb("renew", 0.9, "A", result=1.0), taken(1.2, "B", "A")],
    "two takeovers of one claim": [claimed(0, "A"), taken(1.2, "B", "A"), taken(2.4, "C", "A")],
    "takeover by another request": [claimed(0, "A"), taken(1.2, "B", "A", fingerprint="other")],
    "takeover counts wrong": [claimed(0, "A"), taken(1.2, "B", "A", attempt=3)],
    "takeover of nobody's claim": [claimed(0, "A"), taken(1.2, "B", "X")],
    "takeover of what waits for an operator": [claimed(0, "A", hold=True), taken(1.2, "B", "A")],
    "claimed anew over a record": [claimed(0, "A"), claimed(2, "B")],
    "claimed after an outcome was stored": [claimed(0, "A"), stored(0.2, "A"), taken(2, "B", "A")],
    "second outcome": [claimed(0, "A"), stored(0.2, "A"), stored(2, "B")],
    "ran while unknown": [claimed(0, "A"), released(0.2, "A", "unknown"), taken(2, "B", "A")],
    "replay of what nobody stored": [claimed(0, "A"), call(0.5, "replay", "A")],
    "replay to another request": [
        *(claimed(0, "A"), stored(0.2, "A"), call(0.5, "replay", "A", fingerprint="other")),
    ],
    "stale replay": [
        *(claimed(0, "A"), stored(0.2, "A"), claimed(104, "B"), stored(105, "B"), call(106, "replay", "A")),
    ],
    "lost outcome": [claimed(0, "A"), stored(0.2, "A"), call(0.5, "request_in_progress")],
    "order without a claim": [Order("k", "A")],
    "two orders of one claim": [claimed(0, "A"), joined(0.2, "A"), Order("k", "A"), Order("k", "A")],
    "lost order": [claimed(0, "A"), joined(0.2, "A")],
    "two orders": [
        *(claimed(0, "A"), joined(0.2, "A", result=None), taken(1.2, "B", "A"), joined(1.4, "B")),
        *(Order("k", "A"), Order("k", "B")),
    ],
    "claimed after its work was committed": [
        *(claimed(0, "A"), joined(0.2, "A"), Order("k", "A"), taken(1.2, "B", "A")),
    ],
    "stuck": [
        *(claimed(0, "A"), joined(0.2, "A"), Order("k", "A")),
        verb("reserve", 1.3, "B", result="found"),
        call(1.3, "request_in_progress"),
    ],
    "told done, and nobody said so": [claimed(0, "A"), call(2, "response_not_replayable")],
    "surprise": [call(0, "idempotency_configuration")],
}


@pytest.mark.parametrize("lines", RIGHT.values(), ids=RIGHT)
def test_what_the_rules_admit_is_no_finding(lines: list[Line]) -> None:
    """A finding is only what nothing explains."""
    assert rules(*lines) == set()


@pytest.mark.parametrize("rule", WRONG)
def test_what_cannot_have_happened_is_found(rule: str) -> None:
    """By the rule that it breaks; it may break others too."""
    assert rule in rules(*WRONG[rule])


def test_every_rule_has_its_history() -> None:
    """No rule of the checker's stands untried."""
    from pathlib import Path
    from re import findall

    text = Path(__file__).with_name("checker.py").read_text()
    named = set(findall(r'(?:yield|rule =) \(?\s*"([^"]+)"', text)) | {"claimed after an outcome was stored"}
    assert named == set(WRONG)
