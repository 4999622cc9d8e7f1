"""The store contract, on MySQL in every way that it is asked of MariaDB."""

from __future__ import annotations

from tests.stores import test_mariadb_contract as mariadb
from tests.stores.mariadb_case import OnMySQL


class TestMySQL(OnMySQL, mariadb.TestMariaDB):
    """Everything that a store must do."""


class TestMySQLThroughAnEngineOfTheCallers(OnMySQL, mariadb.TestMariaDBThroughAnEngineOfTheCallers):
    """In repeatable read and another time zone."""


class TestJoiningInMySQL(OnMySQL, mariadb.TestJoiningInMariaDB):
    """A caller's transaction."""


class TestSessionsInMySQL(OnMySQL, mariadb.TestSessionsInMariaDB):
    """A caller's session."""


class TestUnreadableInMySQL(OnMySQL, mariadb.TestUnreadableInMariaDB):
    """Rows of a newer version."""
