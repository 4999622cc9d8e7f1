"""MySQL: what is asked of MariaDB outside of the contract, on a table there."""

from __future__ import annotations

from tests.stores.mariadb_case import MySQLTable
from tests.stores.test_mariadb_store import *  # noqa: F403 - each test, on this module's Table
from tests.stores.test_mariadb_walk import *  # noqa: F403

Table = MySQLTable
