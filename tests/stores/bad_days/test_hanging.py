"""The database hangs: every wait has an end, after which the request is refused and nothing has run."""

from __future__ import annotations

import socket

import pytest

from idemcore import Engine, StoreUnavailable
from tests.stores.bad_days.day import Day


def test_a_server_that_accepts_and_never_answers_is_given_up(day: Day) -> None:
    """DEG-02: `connect_timeout`, 10 seconds unless the URL says otherwise, ends the wait."""
    day.net.silent = True
    store = day.store_at(day.url + "?connect_timeout=2")
    day.idem, idem = Engine(store, observers=[day.events.append]), day.idem
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        day.pay()
    assert day.ledger == []
    assert day.names() == ["StoreFailed"]
    store.close()
    day.idem = idem


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_host_that_is_gone_is_noticed(day: Day, driver: str) -> None:
    """DEG-02: the system is asked to end a connection on which nothing is acknowledged, within 20 seconds."""
    store = day.store_at(day.server.url(driver=driver))
    with store._db.link() as link:
        link.rows("SELECT 1", {})
        with socket.fromfd(link._connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as end:
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
    store.close()


def test_a_lock_that_is_kept_ends_in_a_refusal(day: Day) -> None:
    """DEG-02: a stranger's transaction holds the whole table; the session's own limits end the wait."""
    assert day.pay("done") == "paid 1"
    store = day.store_at(day.url)
    with store._db.link() as link:
        link.rows("SET statement_timeout = '100ms'", {})
    day.idem, idem = Engine(store, observers=[day.events.append]), day.idem
    with day.server.connect() as other, other.transaction():
        other.execute(f"LOCK TABLE {day.table} IN ACCESS EXCLUSIVE MODE")
        for key in ("new", "done"):
            with pytest.raises(StoreUnavailable, match="in time"):
                day.pay(key)
            with store._db.link() as link:  # the one that was cut off is not used again
                link.rows("SET statement_timeout = '100ms'", {})
    assert day.pay("new") == "paid 2"
    assert day.ledger == ["done", "new"]
    store.close()
    day.idem = idem
