"""PostgreSQL breaks a deadlock or cannot order a transaction: tried again inside, within a limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from idemcore import StoreUnavailable
from tests.stores.bad_days.day import Day


class Fault:
    """A trigger that refuses the next so many writes with an SQLSTATE."""

    def __init__(self, day: Day) -> None:
        self.day = day
        self.name = f"refuse_{day.table}"
        day.execute(f"CREATE SEQUENCE {self.name}_used")  # a rollback does not take its steps back

    def arm(self, state: str, count: int) -> None:
        name, table = self.name, self.day.table
        self.day.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('{name}_used') <= {count} THEN RAISE EXCEPTION USING ERRCODE = '{state}'; END IF; "
            "RETURN NEW; END $$"
        )
        self.day.execute(f"SELECT setval('{name}_used', 1, false)")
        self.day.execute(
            f"CREATE OR REPLACE TRIGGER {name} BEFORE INSERT OR UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {name}()"
        )

    def remove(self) -> None:
        self.day.execute(f"DROP FUNCTION IF EXISTS {self.name} CASCADE")
        self.day.execute(f"DROP SEQUENCE {self.name}_used")


@pytest.fixture
def fault(day: Day) -> Iterator[Fault]:
    """Not armed yet."""
    fault = Fault(day)
    yield fault
    fault.remove()


@pytest.mark.parametrize("state", ["40001", "40P01"], ids=["serialization failure", "deadlock"])
def test_a_collision_is_tried_again_and_no_caller_sees_it(day: Day, fault: Fault, state: str) -> None:
    """SQL-05: at the claim and at its record; one effect."""
    fault.arm(state, 3)
    assert day.pay(on_effect=lambda: fault.arm(state, 3)) == "paid 1"
    assert day.pay() == "replay paid 1"
    assert day.ledger == ["k-1"]
    assert day.names() == []


@pytest.mark.parametrize("state", ["40001", "40P01"], ids=["serialization failure", "deadlock"])
def test_collisions_without_end_are_refused(day: Day, fault: Fault, state: str) -> None:
    """SQL-05, DEG-02: after a number of tries it is StoreUnavailable, and nothing has run."""
    fault.arm(state, 10_000)
    with pytest.raises(StoreUnavailable):
        day.pay()
    assert day.ledger == []
