"""SQLite: who waits for whom, what its errors mean, whose connections are used, rows that are damaged."""

from __future__ import annotations

import gc
import pickle
import sqlite3
import traceback
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, create_engine, text
from sqlalchemy.engine import make_url

from idemcore.engine import Engine
from idemcore.errors import ConfigurationError, StoreFull, StoreUnavailable
from idemcore.identity import Identity
from idemcore.record import Answer, Found, Record, State, Stored, Superseded, UnreadableRecord
from idemcore.stores.open import open_store
from idemcore.stores.sql import SQLAlchemyStore, idempotency_table
from tests.stores import racers
from tests.stores.claims import ANSWER, ONE, A, B, claim, completed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file that is not there yet."""
    return tmp_path / "records.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLAlchemyStore]:
    """On a fresh file."""
    store = SQLAlchemyStore(f"sqlite:///{path}")
    store.create_schema()
    yield store
    assert len(store._db.source._out) == 0  # type: ignore[attr-defined] # it is a File
    store.close()


@pytest.fixture
def outside(path: Path, store: SQLAlchemyStore) -> Iterator[sqlite3.Connection]:
    """A connection of another program's, impatient."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0.2)) as connection:
        yield connection


def write(connection: sqlite3.Connection, column: str, value: object, key: str = "k-1") -> None:
    connection.execute(f"UPDATE idempotency_records SET {column} = ? WHERE key = ?", (value, key))  # noqa: S608 - our own names


def test_a_replay_needs_no_lock(store: SQLAlchemyStore, outside: sqlite3.Connection) -> None:
    """RAC-02: while another program writes, a finished record and a running claim are reported at once."""
    completed(store)
    store.reserve(claim("k-2"))
    outside.execute("BEGIN IMMEDIATE")
    for key, state in (("k-1", State.COMPLETED), ("k-2", State.CLAIMED)):
        record = store.reserve(claim(key, B))
        assert isinstance(record, Record)
        assert record.state is state
        assert store.get(Identity("tenant", "op", key)) is not None
    outside.execute("ROLLBACK")


def test_a_replay_writes_nothing(path: Path, store: SQLAlchemyStore) -> None:
    """RAC-02: a hundred replays leave the write-ahead log as it was."""
    completed(store)
    log = path.with_name(path.name + "-wal")
    before = log.read_bytes()
    for _ in range(100):
        assert store.reserve(claim(token=B)) is not None
    assert log.read_bytes() == before


@pytest.mark.parametrize(("number", "wrote"), [(1, 1), (2, 0)])
def test_rows_are_counted_for_every_statement_that_writes(
    store: SQLAlchemyStore, number: int, wrote: int
) -> None:
    """The driver counts -1, which is true, for one that begins with WITH: a claim for everybody."""
    store.reserve(claim())
    update = "WITH one AS (SELECT 1) UPDATE idempotency_records SET attempt = attempt WHERE attempt = "
    with store._db.link() as link:
        assert link.count(f"{update}{number}", {}) == wrote


def test_no_verb_leaves_the_file_locked(store: SQLAlchemyStore, outside: sqlite3.Connection) -> None:
    """SQL-02: after every verb another program can write at once, results with RETURNING included."""
    verbs = [
        lambda: store.reserve(claim()),
        lambda: store.renew(claim()),
        lambda: store.renew(claim("nothing there")),
        lambda: store.take_over(b"x", claim()),
        lambda: store.complete(claim(), ANSWER),
        lambda: store.complete(claim(token=B), ANSWER),
        lambda: store.release(claim(), "released"),
        lambda: store.resolve(ONE, b"x", "released", 1.0),
        lambda: store.find(limit=1),
        lambda: store.sweep(1),
        lambda: store.sweep(100),
        store.check,
        store.create_schema,
    ]
    for number, verb in enumerate(verbs):
        verb()
        outside.execute("BEGIN IMMEDIATE")
        completed_rows = outside.execute("UPDATE idempotency_records SET expires_at = expires_at").rowcount
        outside.execute("COMMIT")
        assert completed_rows == 1, number


def test_a_locked_file_is_try_later_and_then_works(path: Path) -> None:
    """SQL-02: a writer that outstays the timeout is StoreUnavailable, with SQLite's error as its cause."""
    store = SQLAlchemyStore(f"sqlite:///{path}?timeout=0.05")
    store.create_schema()
    completed(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as outside:
        outside.execute("BEGIN IMMEDIATE")
        for verb in (
            lambda: store.reserve(claim("new")),
            lambda: store.complete(claim("new"), ANSWER),
            lambda: store.sweep(10),
        ):
            with pytest.raises(StoreUnavailable) as refused:
                verb()
            assert isinstance(refused.value.__cause__, sqlite3.OperationalError)
        assert store.reserve(claim(token=B)) is not None
        outside.execute("ROLLBACK")
    assert store.reserve(claim("new")) is None
    store.close()


def test_a_lease_starts_when_the_claim_is_written(path: Path) -> None:
    """LEA-01: time spent on waiting for the write lock is not taken from the lease."""
    now = [1_000.0]
    store = SQLAlchemyStore(f"sqlite:///{path}", clock=lambda: now[0])
    store.create_schema()
    begin = store._db.backend.begin_write

    def wait_long(connection: Any, *, together: bool) -> Any:
        begun = begin(connection, together=together)
        now[0] += 60
        return begun

    store._db.backend.begin_write = wait_long  # type: ignore[method-assign] # stands for a slow neighbour
    assert store.reserve(claim()) is None
    record = store.get(ONE)
    assert isinstance(record, Record)
    assert record.lease_left == 30.0
    store.close()


def test_a_clock_that_is_set_forward_past_the_retention_forgets_what_was_done(path: Path) -> None:
    """SWE-04: also where it was wrong when the work was done, as at boot before NTP. Set back it keeps all."""
    now = [1_000.0]
    store = SQLAlchemyStore(f"sqlite:///{path}", clock=lambda: now[0])
    store.create_schema()
    completed(store)
    for passed in (86_000.0, -900.0):  # of a retention of a day
        now[0] = 1_000.0 + passed
        assert isinstance(store.reserve(claim(token=B)), Record)
    now[0] = 1_000.0 + 86_400.0 + 601.0  # and of max_hold, for which a run may last
    assert store.reserve(claim(token=B)) is None
    store.close()


def test_threads_with_one_connection_between_them(path: Path) -> None:
    """SQL-03: a pool of one serves eight threads whose work overlaps: none holds it while it works."""
    engine = create_engine(f"sqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=30)
    store = SQLAlchemyStore(engine)
    store.create_schema()
    racers.overlap(store)
    assert len(store.find(state=State.COMPLETED, limit=20)) == 8
    store.close()
    engine.dispose()


def test_a_claim_is_visible_to_others_before_its_work_runs(
    path: Path, store: SQLAlchemyStore, outside: sqlite3.Connection
) -> None:
    """SQL-03: it is committed when reserve returns, whatever the caller's own session does later."""
    store.reserve(claim())
    assert outside.execute("SELECT state FROM idempotency_records").fetchall() == [("claimed",)]
    with closing(sqlite3.connect(path)) as session:
        session.execute("BEGIN")
        session.execute("CREATE TABLE orders (id INTEGER)")
        session.rollback()
    assert store.complete(claim(), ANSWER) == Stored()
    assert outside.execute("SELECT state FROM idempotency_records").fetchall() == [("completed",)]


def test_a_pool_that_is_exhausted_is_try_later(path: Path) -> None:
    """DEG-02: a caller who keeps all connections gets StoreUnavailable, not a driver's error."""
    engine = create_engine(f"sqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=0.01)
    store = SQLAlchemyStore(engine)
    store.create_schema()
    with engine.connect(), pytest.raises(StoreUnavailable, match="pool"):
        store.reserve(claim())
    engine.dispose()


@pytest.mark.parametrize("options", [{}, {"isolation_level": "AUTOCOMMIT"}])
def test_an_engine_of_the_callers_is_used_and_left_alone(path: Path, options: dict[str, Any]) -> None:
    """Its transactions work as before, and closing the store closes none of its connections."""
    engine = create_engine(f"sqlite:///{path}", **options)
    store = SQLAlchemyStore(engine)
    store.create_schema()
    completed(store)
    store.close()
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE orders (id INTEGER)"))
        connection.commit()
    with engine.connect() as connection:
        connection.execute(text("INSERT INTO orders VALUES (1)"))
        connection.rollback()
        expected = 1 if options else 0
        assert connection.execute(text("SELECT count(*) FROM orders")).scalar() == expected
    assert store.reserve(claim(token=B)) is not None
    engine.dispose()


def test_the_table_may_have_another_name_in_the_callers_metadata(path: Path) -> None:
    """Made by the caller's own create_all, used by the store."""
    metadata = MetaData()
    table = idempotency_table(metadata, name="kept_answers")
    engine = create_engine(f"sqlite:///{path}")
    metadata.create_all(engine)
    store = SQLAlchemyStore(engine, table=table)
    store.check()
    completed(store)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM kept_answers")).scalar() == 1
    engine.dispose()


def test_connections_are_in_write_ahead_mode(path: Path) -> None:
    """SQL-02: readers do not wait; a power cut may cost the last moments unless it is durable."""
    for durable, level in ((False, 1), (True, 2)):
        store = SQLAlchemyStore(f"sqlite:///{path}", durable=durable)
        store.create_schema()
        pragmas = []
        with store._db.link() as link:
            for name in ("journal_mode", "synchronous", "busy_timeout"):
                pragmas += [row[0] for row in link.rows(f"PRAGMA {name}", {})]
        assert pragmas == ["wal", level, 5_000]
        store.close()


def test_durable_with_an_engine_of_the_callers_is_refused(path: Path) -> None:
    """How its connections write is the caller's to set; silence would promise what is not there."""
    engine = create_engine(f"sqlite:///{path}")
    with pytest.raises(ConfigurationError, match="synchronous"):
        SQLAlchemyStore(engine, durable=True)
    engine.dispose()


def test_a_missing_table_names_the_way_out(path: Path) -> None:
    """Before the schema is made every verb says what to call; it is not an outage."""
    store = SQLAlchemyStore(f"sqlite:///{path}")
    for verb in (store.check, lambda: store.reserve(claim()), lambda: store.sweep(1), lambda: store.get(ONE)):
        with pytest.raises(ConfigurationError, match=r"create_schema\(\)"):
            verb()
    store.close()


def test_another_table_of_that_name_is_refused(path: Path) -> None:
    """Columns or the primary key are missing: said at set-up, not at the first payment."""
    for ddl in (
        "CREATE TABLE idempotency_records (id INTEGER)",
        "CREATE TABLE idempotency_records AS SELECT * FROM other",
    ):
        with closing(sqlite3.connect(path)) as connection:
            if "other" in ddl:
                store = SQLAlchemyStore(f"sqlite:///{path}", table=idempotency_table(MetaData(), name="other"))
                store.create_schema()
                store.close()
            connection.execute("DROP TABLE IF EXISTS idempotency_records")
            connection.execute(ddl)
            connection.commit()
        store = SQLAlchemyStore(f"sqlite:///{path}")
        with pytest.raises(ConfigurationError, match="idempotency_records"):
            store.check()
        store.close()


def test_a_read_only_database_is_a_clear_error(path: Path, store: SQLAlchemyStore) -> None:
    """DEG-01: replays are still read; what must write says that it may not."""
    completed(store)
    reader = SQLAlchemyStore(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert reader.reserve(claim(token=B)) is not None
    for verb in (reader.check, lambda: reader.reserve(claim("new"))):
        with pytest.raises(ConfigurationError, match="read-only"):
            verb()
    reader.close()


def test_that_others_write_does_not_hide_that_this_process_may_not(
    path: Path, store: SQLAlchemyStore, outside: sqlite3.Connection
) -> None:
    """DEG-01: a check waits for no writer, and is not taken in by one."""
    reader = SQLAlchemyStore(f"sqlite:///file:{path}?mode=ro&uri=true")
    outside.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigurationError, match="read-only"):
        reader.check()
    store.check()
    outside.execute("ROLLBACK")
    with store._db.link() as link:
        assert link.rows("PRAGMA busy_timeout", {}) == [(5000,)]
    reader.close()


def test_a_file_that_cannot_be_opened_is_try_later_without_its_path(tmp_path: Path) -> None:
    """DEG-01: the folder is missing; the cause is chained, the message shows no path."""
    store = SQLAlchemyStore(f"sqlite:///{tmp_path}/nowhere/records.db")
    with pytest.raises(StoreUnavailable, match="folder") as refused:
        store.reserve(claim())
    assert str(tmp_path) not in str(refused.value)
    assert refused.value.__cause__ is not None
    store.close()


def test_a_closed_file_is_read_where_nothing_can_be_written(path: Path, store: SQLAlchemyStore) -> None:
    """As on a read-only mount, where SQLite cannot make the files that it wants beside it."""
    completed(store)
    store.close()
    assert not list(path.parent.glob("*-wal"))
    reader = SQLAlchemyStore(f"sqlite:///file:{path}?immutable=1&uri=true")
    assert isinstance(reader.get(ONE), Record)
    with pytest.raises(ConfigurationError, match="read-only"):
        reader.reserve(claim("new"))
    assert list(path.parent.iterdir()) == [path]
    reader.close()


def test_a_new_file_under_a_relative_path_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Cron starts in another directory than a person: an empty file there, and all runs again. Told once, by
    the one who makes it.
    """

    def told(url: str) -> list[str]:
        caplog.clear()
        store = SQLAlchemyStore(url)
        store.create_schema()
        store.close()
        return [record.getMessage() for record in caplog.records]

    for name in ("at-home", "of-cron"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        (message,) = told("sqlite:///records.db")
        assert str(tmp_path / name / "records.db") in message
        assert told("sqlite:///records.db") == []
    assert told(f"sqlite:///{tmp_path}/absolute.db") == []
    assert told("sqlite:///file:records-by-uri.db?uri=true") == []


def test_a_file_of_another_kind_is_refused(path: Path) -> None:
    """Text is not a database."""
    path.write_text("this is a text file of some length, and no database at all\n" * 50)
    store = SQLAlchemyStore(f"sqlite:///{path}")
    with pytest.raises(ConfigurationError, match="not a SQLite database"):
        store.check()
    store.close()


def test_a_full_disk_is_store_full_and_nothing_is_half_written(store: SQLAlchemyStore) -> None:
    """DEG-01: no room for the answer: the claim stands as it was, and the write lock is free."""
    store.reserve(claim())
    with store._db.link() as link:  # the connection that the next verb gets
        pages = link.rows("PRAGMA page_count", {})[0][0]
        link.rows(f"PRAGMA max_page_count={pages}", {})
    with pytest.raises(StoreFull):
        store.complete(claim(), Answer("http", b"", b"x" * 1_000_000))
    record = store.get(ONE)
    assert isinstance(record, Record)
    assert record.state is State.CLAIMED
    assert store.complete(claim(), ANSWER) == Stored()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&cache=shared&uri=true"]
)
def test_sqlite_in_memory_is_refused(url: str) -> None:
    """Every connection would have a database of its own; the message points to the store that does it."""
    with pytest.raises(ConfigurationError, match="MemoryStore"):
        SQLAlchemyStore(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://root:hunter2@host:hunter2/x",
        "postgresql://root:hunter2@host/x?plugin=hunter2",
        "sqlite:///hunter2?timeout=hunter2",
        "sqlite:///hunter2?timeout=1&timeout=2",
        "sqlite:///hunter2?check_same_thread=hunter2",
    ],
)
def test_a_url_with_a_wrong_port_or_option_is_refused_by_its_scheme_alone(url: str) -> None:
    """SEC: an error of the program's configuration, which shows nothing of the URL but the scheme."""
    for opened in (SQLAlchemyStore, open_store):
        with pytest.raises(ConfigurationError, match="The port or an option of the '") as told:
            opened(url)
        assert "hunter2" not in str(told.value)
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__


def test_other_databases_are_refused_for_now() -> None:
    """Half of a store is none; and no message shows the URL's password."""
    for url in ("oracle://u:secret@h/db", make_url("mssql+pyodbc://u:secret@h/db")):
        with pytest.raises(ConfigurationError, match="sqlite") as refused:
            SQLAlchemyStore(url)
        assert "secret" not in str(refused.value)
    with pytest.raises(ConfigurationError) as refused:
        SQLAlchemyStore("secret")
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", None),
        ("meta", None),
        ("body", "text where bytes belong"),
        ("kind", "pickled"),
        ("fingerprint", b"\xff\xfe"),
        ("token", "text"),
        ("attempt", "many"),
        ("hold", 7),
        ("claimed_at", "yesterday"),
        ("lease_until", b"\x00"),
        ("completed_at", None),
        ("format", 2),
        ("state", "pondered"),
    ],
)
def test_a_damaged_row_is_unreadable_and_left_alone(
    store: SQLAlchemyStore, outside: sqlite3.Connection, column: str, value: object
) -> None:
    """SEC-02, row 1 of the machine: reported as such by every verb that looks, overwritten by none."""
    completed(store)
    write(outside, column, value)
    if isinstance(value, bytes) and column == "fingerprint":
        outside.execute("UPDATE idempotency_records SET fingerprint = CAST(fingerprint AS TEXT)")
    write(outside, "expires_at", 1)
    outside.text_factory = bytes
    before = outside.execute("SELECT * FROM idempotency_records").fetchall()
    other = claim(token=B)
    for record in (store.get(ONE), store.reserve(other), store.find(limit=5)[0].record):
        assert isinstance(record, UnreadableRecord)
    assert isinstance(store.complete(other, ANSWER), Superseded)
    assert isinstance(store.complete(claim(), ANSWER), Superseded)
    assert not store.take_over(A, other)
    assert not store.release(claim(), "deleted")
    assert store.renew(claim()) is None
    assert not store.resolve(ONE, A, "released", 1.0)
    assert outside.execute("SELECT * FROM idempotency_records").fetchall() == before


def test_text_that_is_not_utf_8_in_a_key_does_not_hide_the_other_rows(
    store: SQLAlchemyStore, outside: sqlite3.Connection
) -> None:
    """An operator still sees the list."""
    completed(store, "k-1")
    completed(store, "k-2")
    outside.execute("UPDATE idempotency_records SET key = CAST(x'6bff' AS TEXT) WHERE key = 'k-2'")
    assert sorted(found.identity.key for found in store.find(limit=5)) == ["k-1", "k\\xff"]
    completed(store, "z-3")
    walked: list[Found] = []
    while page := store.find(limit=1, after=walked[-1] if walked else None):
        walked += page
        assert len(walked) <= 3  # it goes on from the text as it is, not as it is shown
    assert [found.identity.key for found in walked] == ["k-1", "k\\xff", "z-3"]


def test_a_list_loads_no_answer(store: SQLAlchemyStore) -> None:
    """A page over 40 MB of answers needs a small part of one of them."""
    large = Answer("http", b"", b"x" * 4_000_000)
    for number in range(10):
        store.reserve(claim(f"k-{number}"))
        store.complete(claim(f"k-{number}"), large)
    tracemalloc.start()
    page = store.find(limit=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert {found.body_bytes for found in page} == {4_000_000}
    assert len(page) == 10
    assert peak < 1_000_000


class Trap:
    """Would make a file if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_nothing_in_a_row_is_ever_unpickled(
    store: SQLAlchemyStore, outside: sqlite3.Connection, tmp_path: Path
) -> None:
    """SEC-02: whoever can write to the table runs no code here: its bytes come back as bytes."""
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    completed(store)
    for column in ("body", "meta", "token"):
        write(outside, column, trap)
    record = store.reserve(claim(token=B))
    assert isinstance(record, Record)
    assert record.answer == Answer("http", trap, trap)
    assert not (tmp_path / "sprung").exists()


def test_a_sweep_is_a_bounded_statement(store: SQLAlchemyStore, outside: sqlite3.Connection) -> None:
    """SWE-02: 2,500 dead rows leave in steps of at most 1,000; what is live and what is on hold stays."""
    completed(store)
    write(outside, "expires_at", 1)
    outside.execute("CREATE TEMP TABLE many AS SELECT * FROM idempotency_records")
    outside.execute("BEGIN")
    for number in range(2, 2_501):
        outside.execute("UPDATE many SET key = ?", (f"k-{number}",))
        outside.execute("INSERT INTO idempotency_records SELECT * FROM many")
    outside.execute("COMMIT")
    completed(store, "live")
    store.reserve(claim("held", hold=True))
    write(outside, "expires_at", 1, "held")
    write(outside, "lease_until", 1, "held")
    assert [store.sweep(1_000).removed for _ in range(4)] == [1_000, 1_000, 500, 0]
    assert {found.identity.key for found in store.find(limit=10)} == {"live", "held"}


def test_an_unreadable_abandoned_claim_counts_as_abandoned(
    store: SQLAlchemyStore, outside: sqlite3.Connection
) -> None:
    """SWE-01: a newer version's claim that nobody finished may hide an effect too."""
    store.reserve(claim())
    for column, value in (("format", 2), ("expires_at", 1), ("lease_until", 1)):
        write(outside, column, value)
    assert store.sweep(10)[:2] == (0, 1)


def test_durations_beyond_any_calendar_are_kept_for_good(store: SQLAlchemyStore) -> None:
    """A retention of timedelta.max is for ever, not an overflow."""
    for_ever = claim(retention=86_399_999_999_999.0, max_hold=86_399_999_999_999.0)
    assert store.reserve(for_ever) is None
    assert store.renew(for_ever) is not None
    assert store.complete(for_ever, ANSWER) == Stored()
    record = store.get(ONE)
    assert isinstance(record, Record)
    assert not record.past_retention


def test_no_connection_is_left_to_the_garbage_collector(path: Path) -> None:
    """A closed store leaves no open file: warnings are errors here, ResourceWarning included."""
    store = SQLAlchemyStore(f"sqlite:///{path}")
    store.create_schema()
    completed(store)
    store.close()
    del store
    gc.collect()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)


def test_urls_open_stores() -> None:
    """The scheme decides; what is not known is refused with what is."""
    assert repr(open_store("memory://")) == "MemoryStore(<0 records>)"
    assert repr(open_store("sqlite:///never-opened.db")) == "SQLAlchemyStore(sqlite, idempotency_records)"
    for url in ("memory://x", "mongodb://localhost", "payments.db", "ftp://user:secret@host/x"):
        with pytest.raises(ConfigurationError) as refused:
            open_store(url)
        assert "secret" not in str(refused.value)


def test_what_a_trigger_says_is_in_no_traceback(store: SQLAlchemyStore, outside: sqlite3.Connection) -> None:
    """Its words may quote the row; the log gets SQLite's own name for the error."""
    outside.execute(
        "CREATE TRIGGER tell BEFORE INSERT ON idempotency_records "
        "BEGIN SELECT RAISE(ABORT, 'no secret-key'); END"
    )
    secret = claim("secret-key")  # a traceback quotes the line below
    with pytest.raises(ConfigurationError, match="SQLITE_CONSTRAINT_TRIGGER") as refused:
        store.reserve(secret)
    assert "secret-key" not in "".join(traceback.format_exception(refused.value))


def test_a_store_of_ones_own_outlives_its_engine(tmp_path: Path) -> None:
    """It may serve another. A closed engine does not hand it out, so whoever made it keeps and closes it."""
    with closing(open_store(f"sqlite:///{tmp_path / 'a.db'}")) as store:
        for number in (1, 2):
            with Engine(store, observers=()) as idem:
                idem.create_schema()
                asked = {"scope": f"tenant-{number}", "operation": "charge", "key": "k", "fingerprint": "v1:x"}
                idem.begin(**asked).complete(b"")  # type: ignore[union-attr, arg-type]  # a first attempt
            with pytest.raises(ConfigurationError, match="engine is closed"):
                _ = idem.store
        assert len(store.find(limit=10)) == 2
