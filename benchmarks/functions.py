"""What does `@idempotent` cost? A bare dict and Lock pair, decorated functions, and peers, in one run.

    python -m benchmarks.functions [--quick] [--json FILE]

Figures are CPU time; "ratio" is in units of the base of each table. The base of the first is what
remembering a key costs without any of it: a fresh uuid4 as the key, then claim and complete in a dict under
a Lock. Every contender makes its key in the same way. SQLite is compared with the two bare statements, and so
is PostgreSQL where IDEMCORE_TEST_POSTGRES_URL names one, by elapsed time: its work is done in the server.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.function_peers import dbos, idemkit, justonce, powertools
from benchmarks.function_subjects import always, caller, charge_invoice, charge_order, fresh, model_caller
from benchmarks.harness import Contender, Row, arguments, machine, race, save, show
from idemcore import Engine
from idemcore_function import idempotent, run_batch


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    for name in ("idemkit", "aws_lambda_powertools", "dbos", "justonce"):
        logging.getLogger(name).setLevel(logging.ERROR)
    rounds, calls = (7, 200) if options.quick else (21, 300)
    with tempfile.TemporaryDirectory() as folder:
        memory = [
            Contender("one dict and Lock pair", dict_pair, base=True),
            Contender("bare function, scalars", caller(charge_order, fresh)),
            Contender("bare function, pydantic", model_caller(charge_invoice, fresh)),
            *ours("memory://"),
            *idemkit(),
            *powertools(),
        ]
        sqlite = [
            Contender("two bare statements", statement_pair(Path(folder) / "bare.db"), base=True),
            *ours(f"sqlite:///{folder}/functions.db"),
            Contender("idemcore: an item of a batch", batch_caller(f"sqlite:///{folder}/batch.db")),
            *justonce(f"{folder}/justonce.db"),
        ]
        groups: dict[str, Sequence[Row]] = {
            "In memory, in units of a dict and Lock pair": race(
                memory, rounds=rounds, calls=calls, title="memory", cpu_time=True
            ),
            "On SQLite, in units of two bare statements": race(
                sqlite, rounds=rounds, calls=calls, title="SQLite", cpu_time=True
            ),
        }
        # Apart and in fewer calls, for one takes as long as a hundred of the others.
        durable = [
            Contender("two bare statements", statement_pair(Path(folder) / "pair.db"), base=True),
            *dbos(f"sqlite:///{folder}/dbos.db"),
        ]
        groups["A workflow of DBOS on SQLite, in units of two bare statements"] = race(
            durable, rounds=rounds, calls=calls // 30, title="DBOS", cpu_time=True
        )
    url = os.environ.get("IDEMCORE_TEST_POSTGRES_URL", "")
    if url:
        with postgres_table(url) as pair:
            postgres = [
                Contender("two bare statements", pair, base=True),
                *ours(url),
                Contender("idemcore: an item of a batch", batch_caller(url)),
            ]
            title = "On PostgreSQL, in units of two bare statements"
            groups[title] = race(postgres, rounds=rounds, calls=calls, title="PostgreSQL")
    for title, rows in groups.items():
        show(title, rows)
    if options.json:
        save(
            options.json,
            machine("pydantic", "sqlalchemy", "idemkit", "aws-lambda-powertools", "justonce", "dbos"),
            groups,
        )


def ours(url: str) -> list[Contender]:
    idem = Engine(url)
    idem.create_schema()
    order = idempotent(idem, key="{order}", namespace="charge_order")(charge_order)
    model = idempotent(idem, key="{invoice.id}", namespace="charge_invoice")(charge_invoice)
    return [
        Contender("idemcore: new, scalars", caller(order, fresh)),
        Contender("idemcore: replay, scalars", caller(order, always())),
        Contender("idemcore: new, pydantic", model_caller(model, fresh)),
        Contender("idemcore: replay, pydantic", model_caller(model, always())),
    ]


def batch_caller(url: str) -> Callable[[int], None]:
    """A batch of new items on one thread; its own threads would share a processor with the others."""
    idem = Engine(url)
    idem.create_schema()
    order = partial(idempotent(idem, key="{order}", namespace="charge_order")(charge_order), amount=10)

    def run(calls: int) -> None:
        assert run_batch(order, [fresh() for _ in range(calls)], workers=1, progress=False).complete

    return run


_records: dict[str, str] = {}
_lock = threading.Lock()


def dict_pair(calls: int) -> None:
    for _ in range(calls):
        key = fresh()
        with _lock:
            if key not in _records:
                _records[key] = "claimed"
        with _lock:
            _records[key] = "receipt"
    _records.clear()


def statement_pair(path: Path) -> Callable[[int], None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE records (key TEXT PRIMARY KEY, state TEXT, body BLOB) WITHOUT ROWID")

    def run(calls: int) -> None:
        for _ in range(calls):
            key = fresh()
            connection.execute("INSERT INTO records VALUES (?, 'claimed', NULL) ON CONFLICT DO NOTHING", (key,))
            connection.execute("UPDATE records SET state = 'done', body = ? WHERE key = ?", (b"receipt", key))

    return run


@contextmanager
def postgres_table(url: str) -> Iterator[Callable[[int], None]]:
    """The two bare statements, each in a transaction of its own, on a table that goes again."""
    import psycopg

    address = url.replace("postgresql+psycopg://", "postgresql://")
    table = f"bare_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} (key text PRIMARY KEY, state text, body bytea)")
        claim = f"INSERT INTO {table} VALUES (%s, 'claimed', NULL) ON CONFLICT DO NOTHING"  # noqa: S608 - our own name
        complete = f"UPDATE {table} SET state = 'done', body = %s WHERE key = %s"  # noqa: S608 - our own name

        def run(calls: int) -> None:
            for _ in range(calls):
                key = fresh()
                connection.execute(claim, (key,))
                connection.execute(complete, (b"receipt", key))

        try:
            yield run
        finally:
            connection.execute(f"DROP TABLE {table}")


if __name__ == "__main__":
    main()
