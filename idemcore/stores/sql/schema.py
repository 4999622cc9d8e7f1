"""The table at start-up: made where it is missing, and checked before the first request needs it."""

from __future__ import annotations

import dataclasses

from sqlalchemy import Table

from idemcore.identity import Identity
from idemcore.record import Claim, Tombstone
from idemcore.stores.sql import ddl
from idemcore.stores.sql.connections import Connections, Link
from idemcore.stores.sql.rows import START, Parameters, claim_parameters, outcome_parameters, place_parameters
from idemcore.stores.sql.statements import Statements


class Schema:
    """One table and its index, in the database that these connections lead to."""

    def __init__(self, table: Table, db: Connections, sql: Statements) -> None:
        self._table = table
        self._db = db
        self._sql = sql

    def create(self) -> None:
        """Makes what is missing, then checks.

        To make a table that is there waits for every open transaction on it, and others' claims behind it; so
        it is looked for first.
        """
        with self._db.link() as link:
            if not self._is_made(link):
                with link.changing_schema():
                    for statement in ddl.statements(self._table, self._db.backend.dialect):
                        link.rows(statement, {})
        self.check()

    def check(self) -> None:
        """Has every statement prepared, and tries to write."""
        identity = Identity("", "", "")
        parameters = claim_parameters(Claim(identity, "", b"", 0, 0, 0, 0, hold=False))
        parameters |= outcome_parameters(Tombstone(""))
        parameters |= {"seen_token": b"", "verdict_token": b"", "at_most": 0, "places": [START]}
        parameters |= {"only_scope": None, "only_operation": None, "only_state": None}
        parameters |= {"only_open": False, **place_parameters(START)}
        with self._db.link() as link:
            link.examine()
            for field in dataclasses.fields(self._sql):
                statement = getattr(self._sql, field.name)
                if statement is not None:
                    link.rows("EXPLAIN " + statement, parameters)
            link.try_to_write(self._sql.forget, parameters)  # no identity is empty, so there is no such row

    def _is_made(self, link: Link) -> bool:
        """Whether the table is there with an index for each that it should have, whatever their names."""
        where: Parameters = {"of_table": self._table.name, "in_schema": self._table.schema}
        there = {row[0] for row in link.rows(self._db.backend.indexed, where)}
        wanted = [self._table.primary_key.columns[0], *(index.columns[0] for index in self._table.indexes)]
        return there.issuperset(column.name for column in wanted)
