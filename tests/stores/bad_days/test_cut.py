"""Connections are cut at random byte offsets, in both directions, at every verb, once and twice in a row.

No process dies here, so nothing may be lost at all: one effect for each key, its answer replayed, and no key
that is not free or settled when its lease is over.
"""

# ruff: noqa: S608 - the names in the statements are our own

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from idemcore import Attempt, InProgress, NotReplayable, OutcomeUnknown, StoreUnavailable, fingerprint
from idemcore.record import Answer, Claim, Record
from tests.stores.bad_days.day import Day, identity_of
from tests.stores.network import Direction

pytestmark = pytest.mark.slow

SEED = 20
CUTS_FOR_EACH = 6
DONE = Answer("returned", b"", b"done")

Act = Callable[[Day, str], object]


def begin(day: Day, key: str) -> Attempt:
    begun = day.idem.begin(scope="tenant", operation="charge", key=key, fingerprint=fingerprint({"key": key}))
    assert isinstance(begun, Attempt)
    return begun


def pay(day: Day, key: str) -> None:
    day.pay(key)


def pay_and_renew(day: Day, key: str) -> None:
    attempt = begin(day, key)
    day.ledger.append(key)
    try:
        attempt.renew()
    finally:
        attempt.complete(b"paid")


def release(day: Day, key: str) -> None:
    begin(day, key).release()


def forget(day: Day, key: str) -> None:
    begin(day, key).forget()


def leave_unknown(day: Day, key: str) -> None:
    attempt = begin(day, key)
    day.ledger.append(key)
    attempt.unknown("timeout")


def tombstone(day: Day, key: str) -> None:
    attempt = begin(day, key)
    day.ledger.append(key)
    attempt.tombstone("too_large")


def abandoned(day: Day, key: str) -> Claim:
    """What a killed process left, its lease over."""
    claim = Claim(identity_of(key), fingerprint({"key": key}), b"K" * 16, 1, 30.0, 600.0, 86_400.0, hold=False)
    assert day.direct.reserve(claim) is None
    day.execute(f"UPDATE {day.table} SET lease_until = 1 WHERE key = '{key}'")
    return claim


def take_over(day: Day, key: str) -> None:
    if day.direct.get(identity_of(key)) is None:
        abandoned(day, key)
    day.pay(key)


def resolve(day: Day, key: str) -> None:
    if day.direct.get(identity_of(key)) is None:
        abandoned(day, key)
    day.idem.resolve(identity_of(key), b"K" * 16, "done")


def forget_by_hand(day: Day, key: str) -> None:
    if day.direct.get(identity_of(key)) is None:
        abandoned(day, key)
    day.idem.forget(identity_of(key), b"K" * 16)


def at_last(day: Day, key: str) -> str:
    """What a patient caller gets who tries again once the lease is over."""
    try:
        return day.pay(key)
    except (OutcomeUnknown, NotReplayable) as error:
        return type(error).__name__


# What is cut, and what a retry is told in the end.
SCENES: dict[str, tuple[Act, set[str]]] = {
    "reserve and complete": (pay, {"replay"}),
    "renew": (pay_and_renew, {"replay"}),
    "take over": (take_over, {"replay"}),
    "release": (release, {"replay"}),
    "forget": (forget, {"replay"}),
    "unknown": (leave_unknown, {"OutcomeUnknown"}),
    "tombstone": (tombstone, {"NotReplayable"}),
}


def go(day: Day, act: Act, key: str) -> None:
    """Acts until it is through, as a caller does; every refusal on the way is StoreUnavailable or a wait."""
    for _ in range(10):
        try:
            act(day, key)
        except StoreUnavailable:
            continue
        except InProgress:
            day.later(31)  # the lease of a claim whose acknowledgement got lost
            continue
        except (OutcomeUnknown, NotReplayable):
            return
        except AssertionError:  # it is a replay already
            return
        return
    raise RuntimeError("stuck")


@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_cut_loses_nothing_and_repeats_nothing(day: Day, scene: str, way: Direction) -> None:
    """RAC-04, DEG-01: whatever the byte at which it strikes, on old connections and on new ones."""
    act, ends = SCENES[scene]
    chance = random.Random(f"{SEED} {scene} {way}")
    day.idem.check()
    go(day, act, "warm")  # what is prepared now is not sent again
    before = day.net.sent[way]
    go(day, act, "measured")
    length = day.net.sent[way] - before
    for number in range(CUTS_FOR_EACH):
        key = f"k-{number}"
        if number % 3 == 2:
            day.store.close()  # the cut may come while a connection is made
        offsets = [chance.randrange(length + 1)] + [chance.randrange(length // 2)] * (number % 2)
        day.net.cut_after(way, *offsets)
        go(day, act, key)
        day.net.mend()
        day.later(31)
        first = at_last(day, key)
        story = f"seed {SEED}, {scene}, {way}, cut after {offsets}: first {first}"
        assert at_last(day, key).split()[0] in ends, story
        assert day.ledger.count(key) == 1, story
        record = day.direct.get(identity_of(key))
        assert isinstance(record, Record), story
        assert not record.lease_stands, story
    assert day.net.cuts >= CUTS_FOR_EACH / 2


@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize("act", [resolve, forget_by_hand])
def test_a_cut_verdict_is_given_once(day: Day, act: Act, way: Direction) -> None:
    """RAC-04: an operator who is told that the store did not answer says it again, and it counts once."""
    chance = random.Random(f"{SEED} {act.__name__} {way}")
    for number in range(CUTS_FOR_EACH):
        key = f"k-{number}"
        abandoned(day, key)
        day.net.cut_after(way, chance.randrange(400), chance.randrange(200))
        for _ in range(4):
            try:
                act(day, key)
                break
            except StoreUnavailable:
                continue
        day.net.mend()
        assert at_last(day, key) == ("NotReplayable" if act is resolve else f"paid {len(day.ledger)}")
        assert day.ledger.count(key) == (0 if act is resolve else 1)


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_cut_sweep_removes_what_is_due_and_no_more(day: Day, way: Direction) -> None:
    """SWE-02: the batch whose answer got lost has gone or stays for the next; live records are untouched."""
    chance = random.Random(f"{SEED} sweep {way}")
    day.pay("live")
    for number in range(CUTS_FOR_EACH):
        for old in range(5):
            day.direct.complete(abandoned(day, f"old-{number}-{old}"), DONE)
        day.execute(f"UPDATE {day.table} SET expires_at = 1 WHERE key LIKE 'old%'")
        day.net.cut_after(way, chance.randrange(300), chance.randrange(200))
        for _ in range(4):
            try:
                day.idem.sweep(batch=2, pause=0)
                break
            except StoreUnavailable:
                continue
        day.net.mend()
        assert [found.identity.key for found in day.direct.find(limit=10)] == ["live"]
    assert day.pay("live") == "replay paid 1"
