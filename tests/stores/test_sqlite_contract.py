"""The store contract, on a SQLite file."""

from idemcore.testing.contract import JoiningContract, StoreContract, UnreadableContract
from tests.stores.sql_case import CallersConnections, CallersSessions, DamagedRows
from tests.stores.sqlite_case import OnSQLite


class TestSQLite(OnSQLite, StoreContract):
    """Everything that a store must do."""


class TestJoiningInSQLite(CallersConnections, OnSQLite, JoiningContract):
    """A caller's transaction on a connection of their own."""


class TestSessionsInSQLite(CallersSessions, OnSQLite, JoiningContract):
    """A caller's session."""


class TestUnreadableInSQLite(DamagedRows, OnSQLite, UnreadableContract):
    """Rows of a newer version."""
