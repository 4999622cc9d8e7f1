"""The store contract, on PostgreSQL, through both drivers and through a caller's engine."""

from __future__ import annotations

import importlib.util

import pytest
from sqlalchemy import Connection, Engine, create_engine

from idemcore.testing.contract import JoiningContract, StoreContract, UnreadableContract
from tests.stores.postgres_case import OnPostgres, url
from tests.stores.services import REQUIRED
from tests.stores.sql_case import CallersConnections, CallersSessions, DamagedRows, OnCallersEngine

needs_psycopg2 = pytest.mark.skipif(
    not REQUIRED and not importlib.util.find_spec("psycopg2"), reason="psycopg2 is not installed"
)


class TestPostgres(OnPostgres, StoreContract):
    """Everything that a store must do."""


class TestPostgresThroughAnEngineOfTheCallers(OnPostgres, OnCallersEngine, StoreContract):
    """The same over transactional connections that are put into autocommit and back."""


@needs_psycopg2
class TestPostgresThroughPsycopg2(OnPostgres, StoreContract):
    """The same where nothing is prepared: a look comes first."""

    driver = "psycopg2"


class TestPostgresBehindAForgetfulPooler(OnPostgres, OnCallersEngine, StoreContract):
    """The same with psycopg 3 where statements must not be prepared."""

    def make_engine(self, url: str) -> Engine:
        return create_engine(url, connect_args={"prepare_threshold": None})


class TestPostgresUnderSerializable(OnPostgres, OnCallersEngine, StoreContract):
    """The same where the caller's engine asks for the strictest isolation: collisions are tried again."""

    def make_engine(self, url: str) -> Engine:
        options = "-c default_transaction_isolation=serializable"
        return create_engine(url, connect_args={"options": options}, pool_size=20)


class TestJoiningInPostgres(CallersConnections, OnPostgres, JoiningContract):
    """A caller's transaction on a connection of their own."""


class TestSessionsInPostgres(CallersSessions, OnPostgres, JoiningContract):
    """A caller's session."""


@needs_psycopg2
class TestJoiningFromAnotherDriver(CallersConnections, OnPostgres, JoiningContract):
    """The caller's driver need not be the store's."""

    def callers_url(self) -> str:
        return url("psycopg2")


class TestJoiningThroughOneEngine(OnPostgres, OnCallersEngine, JoiningContract):
    """The store and the caller share a pool."""

    def make_engine(self, url: str) -> Engine:
        return create_engine(url, pool_size=20)

    def open_place(self) -> Connection:
        return self.engine.connect()


class TestUnreadableInPostgres(DamagedRows, OnPostgres, UnreadableContract):
    """Rows of a newer version."""
