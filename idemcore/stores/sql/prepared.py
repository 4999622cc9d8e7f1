"""Statements that a psycopg 3 connection prepares once, and then runs with values that are bytes already.

A cursor of psycopg's finds out at every call what it cannot know beforehand: how to take the statement's
text apart, whether it is prepared, how each value is written and each column read. For a few fixed
statements that work is most of what a replay costs its process, so here it is done once: the server is
asked what a statement takes and returns, and each later call is one message with the values in libpq's
binary format.

Chosen by measurement (psycopg 3.3, PostgreSQL 15, in turn on one machine, without waiting for the disk):
where an INSERT and an UPDATE through a prepared cursor are 1, claim and completion are 1.41 through a
cursor and 1.04 in this way; where a SELECT is 1, a replay is 1.49 and 1.14. libpq's blocking call would
make it 0.95 and 1.04, and would stop gevent's loop and hold up Ctrl-C.

The rest stays psycopg's: its connection, its errors, and its way of waiting for the server, under which
gevent runs on and Ctrl-C cancels. No cursor means that no BEGIN is ever sent: each statement is a
transaction of its own, whatever the connection's `autocommit` says.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from psycopg import Connection
from psycopg.errors import DatatypeMismatch, DuplicatePreparedStatement, FeatureNotSupported, error_from_result
from psycopg.errors import InvalidSqlStatementName as NotPrepared
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

Encode: TypeAlias = Callable[[Any], bytes]
Decode: TypeAlias = Callable[[bytes], Any]

_BINARY: Final = int(Format.BINARY)
_GOOD: Final = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_PLACE: Final = re.compile(r"%(?:\((\w+)\)s|%)")


class Prepared:
    """One statement on one connection."""

    __slots__ = ("binds", "decoders", "formats", "name")

    def __init__(
        self, name: bytes, binds: tuple[tuple[str, Encode], ...], decoders: tuple[tuple[int, Decode], ...]
    ) -> None:
        self.name = name
        self.binds = binds
        self.formats = [_BINARY] * len(binds)  # a list: psycopg before 3.2 takes nothing else
        self.decoders = decoders


class PreparedStatements:
    """Runs statements on any number of connections, each by one thread at a time."""

    def __init__(self) -> None:
        self._ready: WeakKeyDictionary[Connection[Any], dict[str, Prepared]] = WeakKeyDictionary()

    def rows(
        self, connection: Connection[Any], statement: str, parameters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """All rows that it returns."""
        prepared, result = self._run(connection, statement, parameters)
        value = result.get_value
        return [
            tuple(
                [
                    None if (raw := value(row, column)) is None else decode(raw)
                    for column, decode in prepared.decoders
                ]
            )
            for row in range(result.ntuples)
        ]

    def count(self, connection: Connection[Any], statement: str, parameters: Mapping[str, Any]) -> int:
        """How many rows it wrote."""
        return self._run(connection, statement, parameters)[1].command_tuples or 0

    def _run(
        self, connection: Connection[Any], statement: str, parameters: Mapping[str, Any]
    ) -> tuple[Prepared, PGresult]:
        ready = self._ready.get(connection)
        if ready is None:
            ready = self._ready[connection] = {}
        prepared = ready.get(statement)
        if prepared is not None:
            try:
                return prepared, _execute(connection, prepared, parameters)
            except NotPrepared:
                pass  # somebody has sent DISCARD ALL meanwhile
            except FeatureNotSupported:  # a column's type was changed under the plan, which the server keeps
                connection.pgconn.send_query_params(b"DEALLOCATE " + prepared.name, None)
                _answer(connection)
        prepared = ready[statement] = _prepare(connection, statement)
        return prepared, _execute(connection, prepared, parameters)


def _execute(connection: Connection[Any], prepared: Prepared, parameters: Mapping[str, Any]) -> PGresult:
    values = [None if (value := parameters[name]) is None else encode(value) for name, encode in prepared.binds]
    connection.pgconn.send_query_prepared(prepared.name, values, prepared.formats, _BINARY)
    return _answer(connection)


def _answer(connection: Connection[Any]) -> PGresult:
    result: PGresult = connection.wait(execute(connection.pgconn))[-1]
    if result.status not in _GOOD:
        raise error_from_result(result, connection.info.encoding)
    return result


def _prepare(connection: Connection[Any], statement: str) -> Prepared:
    name, text, binds = _numbered(statement)
    codec = connection.info.encoding
    connection.pgconn.send_prepare(name, text.encode(codec))
    try:
        _answer(connection)
    except DuplicatePreparedStatement:
        pass  # by another client of a pooler: a name stands for its text, so it is the same statement
    connection.pgconn.send_describe_prepared(name)
    shape = _answer(connection)
    encoders, decoders = _converters(codec)
    try:
        return Prepared(
            name,
            tuple((bind, encoders[shape.param_type(place)]) for place, bind in enumerate(binds)),
            tuple((place, decoders[shape.ftype(place)]) for place in range(shape.nfields)),
        )
    except KeyError:
        raise DatatypeMismatch("a column has a type that was never given to it") from None


@lru_cache(maxsize=256)
def _numbered(statement: str) -> tuple[bytes, str, Sequence[str]]:
    """A name for the statement, its text with numbers for binds, and the binds in that order."""
    binds: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return "%" if found[1] is None else binds.setdefault(found[1], f"${len(binds) + 1}")

    text = _PLACE.sub(number, statement)
    return b"idemcore_" + hashlib.sha256(text.encode()).hexdigest()[:32].encode(), text, tuple(binds)


@lru_cache(maxsize=8)
def _converters(codec: str) -> tuple[Mapping[int, Encode], Mapping[int, Decode]]:
    """By the type's OID, as PostgreSQL's pg_type.dat has it."""
    # Looked up once and written in C where they can be, for a replay reads sixteen values.
    encode: Encode = str.encode if codec == "utf-8" else partial(str.encode, encoding=codec)
    decode: Decode = bytes.decode if codec == "utf-8" else partial(bytes.decode, encoding=codec)
    integer: Decode = partial(int.from_bytes, byteorder="big", signed=True)
    encoders: dict[int, Encode] = {
        16: lambda value: b"\1" if value else b"\0",  # bool
        17: bytes,  # bytea
        20: struct.Struct("!q").pack,  # int8
        21: struct.Struct("!h").pack,  # int2
        23: struct.Struct("!i").pack,  # int4
        25: encode,  # text
        1043: encode,  # varchar
    }
    decoders: dict[int, Decode] = {
        16: b"\1".__eq__,
        17: bytes,
        20: integer,
        21: integer,
        23: integer,
        25: decode,
        1043: decode,
    }
    return encoders, decoders
