"""The server is far away: 200 ms there and back."""

from __future__ import annotations

from tests.stores.bad_days.day import Day


def test_a_distant_server_costs_one_round_trip_a_step(day: Day) -> None:
    """Two for a new payment, one for a replay, and no other difference."""
    assert day.pay("warm") == "paid 1"
    day.net.delay = 0.1
    before = day.net.pieces["there"]
    assert day.pay() == "paid 2"
    assert day.pay() == "replay paid 2"
    assert day.net.pieces["there"] - before == 3
    assert day.ledger == ["warm", "k-1"]
    assert day.names() == []
