"""An application host's clock is off: the database's own decides, for claims and for what is kept."""

from __future__ import annotations

import time

import pytest

from idemcore import InProgress
from tests.stores.bad_days.day import Day


@pytest.mark.parametrize("off", [45.0, -45.0, 40 * 86_400.0])
def test_a_clock_that_is_off_steals_no_lease_and_forgets_nothing(
    day: Day, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LEA-01: a rival on that host is refused while the lease stands, and replays what is kept."""
    real, real_ns = time.time, time.time_ns

    def rival() -> None:
        monkeypatch.setattr(time, "time", lambda: real() + off)
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(off * 1e9))
        with pytest.raises(InProgress):
            day.pay()
        day.idem.sweep()

    assert day.pay(on_effect=rival) == "paid 1"
    day.idem.sweep()
    assert day.pay() == "replay paid 1"
    assert day.ledger == ["k-1"]
