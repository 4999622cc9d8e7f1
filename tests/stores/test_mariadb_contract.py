"""The store contract, on MariaDB, by URL and through a caller's engine."""

from __future__ import annotations

from sqlalchemy import Engine, create_engine

from idemcore.testing.contract import JoiningContract, StoreContract, UnreadableContract
from tests.stores.mariadb_case import OnMariaDB
from tests.stores.sql_case import CallersConnections, CallersSessions, DamagedRows, OnCallersEngine


class TestMariaDB(OnMariaDB, StoreContract):
    """Everything that a store must do."""


class TestMariaDBThroughAnEngineOfTheCallers(OnMariaDB, OnCallersEngine, StoreContract):
    """The same over connections in repeatable read and a time zone of their own, with one connection in all."""

    def make_engine(self, url: str) -> Engine:
        zone = {"init_command": "SET time_zone = '-07:00'"}
        return create_engine(url, pool_size=1, isolation_level="REPEATABLE READ", connect_args=zone)


class TestJoiningInMariaDB(CallersConnections, OnMariaDB, JoiningContract):
    """A caller's transaction on a connection of their own, in repeatable read as the server has it."""


class TestSessionsInMariaDB(CallersSessions, OnMariaDB, JoiningContract):
    """A caller's session."""


class TestUnreadableInMariaDB(DamagedRows, OnMariaDB, UnreadableContract):
    """Rows of a newer version."""
