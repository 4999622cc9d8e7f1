"""The contract's hooks for a table, and what contracts ask of every SQL store."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.orm import Session

from idemcore.identity import Identity
from idemcore.stores.sql import SQLAlchemyStore


class OnTable:
    """Mix in before a contract class, with how a table is made there.

    Tests of one class share it, emptied after each: making one takes a server longer than most tests do.
    """

    table: ClassVar[Any]

    @classmethod
    def make_table(cls) -> Any:
        raise NotImplementedError

    @classmethod
    def setup_class(cls) -> None:
        cls.table = cls.make_table()

    @classmethod
    def teardown_class(cls) -> None:
        cls.table.drop()

    def open_store(self) -> SQLAlchemyStore:
        store: SQLAlchemyStore = self.table.open()
        return store

    def teardown_method(self) -> None:
        super().teardown_method()  # type: ignore[misc] # the contract class beside it has one
        self.table.empty()

    def age(self, identity: Identity, seconds: float) -> None:
        self.table.age(identity, seconds)


class OnCallersEngine(OnTable):
    """The same through a SQLAlchemy engine of the caller's."""

    engine: Engine

    def make_engine(self, url: str) -> Engine:
        return create_engine(url, pool_size=1)

    def open_store(self) -> SQLAlchemyStore:
        self.engine = self.make_engine(self.table.url)
        return SQLAlchemyStore(self.engine, table=self.table.table)

    def teardown_method(self) -> None:
        super().teardown_method()
        self.engine.dispose()


class CallersConnections:
    """Mix in before `JoiningContract`: the caller has an engine of their own, and transactions on it."""

    table: ClassVar[Any]

    def open_store(self) -> SQLAlchemyStore:
        store: SQLAlchemyStore = super().open_store()  # type: ignore[misc] # of the backend's mixin
        self.callers = create_engine(self.callers_url())
        return store

    def callers_url(self) -> str:
        return self.table.url

    def open_place(self) -> Connection | Session:
        return self.callers.connect()

    def teardown_method(self) -> None:
        self.callers.dispose()
        super().teardown_method()  # type: ignore[misc] # of the backend's mixin


class CallersSessions(CallersConnections):
    """The same with a session."""

    def open_place(self) -> Connection | Session:
        return Session(self.callers)


class DamagedRows:
    """Mix in before `UnreadableContract`: rows of a newer version."""

    table: ClassVar[Any]

    def damages(self) -> list[str]:
        return ["format", "state"]

    def damage(self, identity: Identity, kind: str) -> None:
        self.table.write(identity, kind, {"format": 2, "state": "pondered"}[kind])
