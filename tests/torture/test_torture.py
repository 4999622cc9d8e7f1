"""The torture in its short form, and the checker before stores that are wrong, which it has to find."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

import pytest

from tests.stores.services import REQUIRED
from tests.torture.backends import BACKENDS, ready
from tests.torture.director import torture
from tests.torture.faults import FAULTS, Faulty
from tests.torture.history import History
from tests.torture.worker import LEASE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: SIGSTOP is seen in /proc"),
]

SECONDS = 15.0
PACE = 4
"""Where all workers are threads, nothing starts anew and nothing needs the disk: it goes so much faster."""

MOST_ROUNDS = 6
"""On a machine at rest one is enough; a busy one may run few calls in its time."""

TORTURE = {
    "ran",
    "replay",
    "request_in_progress",
    "idempotency_key_reuse",
    "no answer",
    "kill",
    "stop",
    "order",
}
TORTURE |= {"reserve", "take_over", "complete", "release", "renew", "resolve", "sweep"}
"""What has to have happened, or it was no torture: answers, deeds, and verbs that did something."""


@pytest.mark.parametrize("backend", ["memory", "sqlite", "postgres", "mariadb", "redis"])
def test_nothing_happens_that_must_not(backend: str) -> None:
    """RAC-01, RAC-03, LEA-01, LEA-03, SQL-02, SWE-02: eight workers, killed and stopped at every step, sweepers
    and an operator beside them; the history has one effect a claim and no outcome is lost.
    """
    seed = int(os.environ.get("IDEMCORE_TORTURE_SEED") or time.time())
    seen: set[str] = set()
    missing = TORTURE if BACKENDS[backend].orders else TORTURE - {"order"}
    for number in range(MOST_ROUNDS):
        try:
            with ready(backend, troubled=False) as (place, folder):
                pace = PACE if BACKENDS[backend].threads else 1
                history, findings = torture(
                    place, folder, seconds=SECONDS / pace, seed=seed + number, lease=LEASE / pace
                )
        except LookupError as error:
            if REQUIRED:
                pytest.fail(f"{error}, and IDEMCORE_REQUIRE_SERVICES is set")
            pytest.skip(str(error))
        assert findings == [], f"seed {seed + number}"
        seen |= what_happened(history)
        if missing <= seen:
            return
    pytest.fail(f"no torture but a walk: {missing - seen} never happened, from seed {seed} on")


def what_happened(history: History) -> set[str]:
    """In the words of `TORTURE`."""
    words = {call.answer or "no answer" for call in history.calls} | {name for _, name in history.deeds}
    words |= {verb.name for verb in history.verbs if verb.result not in (None, False, 0, "found")}
    return words | ({"order"} if history.orders else set())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_bug_is_found(fault: type[Faulty]) -> None:
    """One clause of the contract is broken; the checker names a rule that speaks of it."""
    found: Counter[str] = Counter()
    for seed in range(1, 11):
        # On a busy machine few runs come late, and some bugs show only then: each try takes longer.
        with ready("memory", troubled=False) as (place, folder):
            _, findings = torture(place, folder, seconds=1.5 * seed, seed=seed, fault=fault, lease=LEASE / PACE)
        found.update(finding.rule for finding in findings)
        if fault.finds & set(found):
            return
    pytest.fail(f"not found; what was: {dict(found)}")
