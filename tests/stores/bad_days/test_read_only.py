"""A replica, or a failover under way, takes no writes. What is kept is replayed, nothing is claimed."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from idemcore import Engine, StoreUnavailable
from tests.stores.bad_days.day import Day, identity_of
from tests.stores.private_postgres import server_folder


def test_a_real_replica_replays_and_claims_nothing(day: Day) -> None:
    """DEG-01: through the statement that would write too; a key that is new, or was freed, is refused."""
    assert day.pay("done") == "paid 1"
    begun = day.idem.begin(scope="tenant", operation="charge", key="freed", fingerprint="v1.x:1")
    begun.release()  # type: ignore[union-attr] # an attempt
    with server_folder() as folder:
        replica = day.server.replica(folder)
        try:
            store = day.store_at(replica.url())
            idem, day.idem = day.idem, Engine(store, observers=[])
            assert day.pay("done") == "replay paid 1"
            with pytest.raises(StoreUnavailable, match="read-only"):
                day.pay("new")
            with pytest.raises(StoreUnavailable, match="read-only"):
                day.idem.begin(scope="tenant", operation="charge", key="freed", fingerprint="v1.x:1")
            with pytest.raises(StoreUnavailable, match="read-only"):
                day.idem.check()
            assert store.get(identity_of("new")) is None
            assert len(store.find(limit=10)) == 2
            store.close()
        finally:
            replica.stop()
    day.idem = idem
    assert day.ledger == ["done"]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_user_who_may_only_read_replays_and_claims_nothing(day: Day, driver: str) -> None:
    """DEG-01: the same with `default_transaction_read_only=on`, in the middle of a run too."""
    assert day.pay("done") == "paid 1"
    day.execute("DROP ROLE IF EXISTS reader")
    day.execute("CREATE ROLE reader LOGIN SUPERUSER")
    day.execute("ALTER ROLE reader SET default_transaction_read_only = on")
    day.idem = Engine(
        day.store_at(make_url(day.server.url(driver=driver)).set(username="reader").render_as_string())
    )
    assert day.pay("done") == "replay paid 1"
    with pytest.raises(StoreUnavailable, match="read-only"):
        day.pay("new")
    assert day.ledger == ["done"]
    day.idem.store.close()
    day.execute("DROP ROLE reader")
