"""A store that fails, hangs or holds odd things; observers that raise. Nothing runs unprotected by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from idemcore import Attempt, Engine, MemoryStore, Policy
from idemcore.errors import ConfigurationError, StoreFull, StoreUnavailable
from idemcore.events import Event, RecordDamaged, RecordingFailed, ReleaseFailed, Unprotected
from idemcore.http import successes
from idemcore.http.kept_answers import Keep
from idemcore.identity import identify
from idemcore.machine import PlainFingerprint
from idemcore.record import Answer, Claim, Record
from tests.adapters.http import Http, InProcess
from tests.adapters.shop import Shop
from tests.adapters.stations import STATIONS
from tests.core.engine_fixtures import Faulty

STATIONS_HERE = [name for name in STATIONS if name != "django"]


class Counter:
    """A shop behind a station over a store that fails on demand."""

    def __init__(self, station: str, **options: Any) -> None:
        self.store = Faulty()
        self.store.inner = MemoryStore()
        self.events: list[Event] = []
        self.engine = Engine(self.store, observers=[self.events.append])  # type: ignore[arg-type]
        self.engine.keeper._rouse = lambda: None  # type: ignore[method-assign]  # its thread would race the tests
        self.transport = InProcess(STATIONS[station](Shop(), self.engine, **options))
        self.http = Http(self.transport)

    def seen(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


@pytest.fixture(params=STATIONS_HERE)
def station(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("error", [StoreUnavailable("host db.internal refused"), StoreFull("no room")])
def test_a_store_that_is_down_runs_nothing(station: str, error: StoreUnavailable) -> None:
    """DEG-01, DEG-02, HTT-07: 503 with Retry-After, the cause not shown; afterwards the same key runs."""
    shop = Counter(station)
    shop.store.break_next("reserve", error=error)
    got = shop.http.post()
    assert got.status == 503
    assert got.code == "store_unavailable"
    assert got.problem["retry"] == "same_key_later"
    assert int(got["Retry-After"] or 0) >= 1
    assert shop.http.runs == 0
    assert shop.http.post().status == 201


def test_fail_open_runs_and_says_so(station: str) -> None:
    """DEG-01: by choice a request runs without protection; its answer and an event say that it did."""
    shop = Counter(station, fail_open=True)
    shop.store.break_next("reserve", times=2)
    first, second = shop.http.post(), shop.http.post()
    assert (first.status, second.status) == (201, 201)
    assert first["Idempotency-Unprotected"] == "true"
    assert not second.replayed
    assert shop.seen(Unprotected) == 2
    assert shop.http.runs == 2
    third, fourth = shop.http.post(), shop.http.post()
    assert third["Idempotency-Unprotected"] is None
    assert fourth.replayed


def test_fail_open_does_not_run_beside_a_run_under_way(station: str) -> None:
    """DEG-01, RAC-01: while this process has the claim the store need not say that somebody is running."""
    shop = Counter(station, fail_open=True)
    shop.http.post(key="another")
    begin, begun = shop.engine.claim, []

    def and_hold(identity: Any, *rest: Any) -> Any:
        begun.append(begin(identity, *rest))
        if len(begun) == 1:
            shop.store.break_next("reserve")
            begun.append(shop.http.post())  # a second request, from within the first one's claim
        return begun[0]

    shop.engine.claim = and_hold  # type: ignore[method-assign]
    assert shop.http.post().status == 201
    assert begun[1].code == "store_unavailable"
    assert shop.http.runs == 2


def test_fail_open_does_not_repeat_what_is_still_to_be_recorded(station: str) -> None:
    """DEG-01, OUT-04: the outcome waits in this very process for a store that is away."""
    shop = Counter(station, fail_open=True)
    shop.store.break_next("complete")
    assert shop.http.post().status == 201
    shop.store.break_next("reserve", times=2)
    assert shop.http.post().code == "store_unavailable"
    other = shop.http.post(key="another")
    assert (other.status, other["Idempotency-Unprotected"]) == (201, "true")
    shop.engine.keeper.stop()
    assert shop.http.post().replayed
    assert shop.http.runs == 2


def test_fail_open_does_not_forget_a_record_that_was_seen(station: str) -> None:
    """DEG-01: a request that waits for another run is refused when the store goes away meanwhile."""
    shop = Counter(station, fail_open=True, wait=timedelta(seconds=9))
    assert shop.http.post("/first/500").status == 500
    elsewhere = Engine(shop.store.inner)
    moved: list[float] = []

    def away(seconds: float) -> None:
        moved.append(seconds)
        shop.store.break_next("reserve")

    shop.engine._waiting_room._sleep = away
    with holding(elsewhere, shop):
        assert shop.http.post("/first/500").code == "store_unavailable"
    assert (len(moved), shop.http.runs, shop.seen(Unprotected)) == (1, 1, 0)


@contextmanager
def holding(engine: Engine, shop: Counter) -> Iterator[None]:
    """The claim of the last request that was sent, held by another process's engine."""
    (identity,) = {event.identity for event in shop.events}
    record = shop.engine.get(identity)
    assert isinstance(record, Record)
    begun = engine.claim(identity, PlainFingerprint(record.fingerprint), Policy())
    assert isinstance(begun, Attempt)
    yield
    begun.release()


def test_fail_open_is_not_for_races_that_were_lost(station: str) -> None:
    """DEG-01: the store is up and busy, so the request is told to come again and not run without it."""
    shop = Counter(station, fail_open=True)
    assert shop.http.post("/first/500").status == 500
    (entry,) = shop.store.inner._shelf.entries.values()

    def lose(*_: object) -> bool:
        entry.token = os.urandom(16)  # somebody else has had it in between
        return False

    shop.store.inner.take_over = lose
    assert shop.http.post("/first/500").code == "store_unavailable"
    assert shop.http.runs == 1


def test_fail_open_streams_and_fails_like_any_other(station: str) -> None:
    """DEG-01: without a claim there is nothing to record, whatever the answer is."""
    shop = Counter(station, fail_open=True)
    for target, status in (
        ("/stream", 200),
        ("/empty", 204),
        ("/big", 200),
        ("/status/500", 500),
        ("/raise-once", 500),
    ):
        shop.store.break_next("reserve")
        got = shop.http.post(target, key=target)
        assert got.status == status
    shop.store.break_next("reserve")
    assert shop.http.post("/stream", key="left", leave=True).status == 200


def test_work_done_and_not_recorded_is_not_run_again(station: str) -> None:
    """OUT-04: the client gets its answer; the claim stands, the recording is tried again and then replays."""
    shop = Counter(station)
    shop.store.break_next("complete", times=1)
    first = shop.http.post()
    assert first.status == 201
    assert shop.http.post().code == "request_in_progress"
    assert shop.seen(RecordingFailed) == 1
    shop.engine.keeper.stop()
    again = shop.http.post()
    assert again.replayed
    assert again.body == first.body
    assert shop.http.runs == 1


def test_an_answer_that_the_store_cannot_take_leaves_a_tombstone(station: str) -> None:
    """OUT-04: what is no outage is not tried for ever; the retry is told that the answer is not kept."""
    shop = Counter(station)
    shop.store.break_next("complete", times=2, error=ValueError("too odd"))
    assert shop.http.post().status == 201
    assert shop.http.post().code == "response_not_replayable"
    assert shop.http.runs == 1


def test_a_release_that_fails_costs_time_only(station: str) -> None:
    """The client gets its 500; until the lease ends its retry is told to wait."""
    shop = Counter(station)
    shop.store.break_next("release")
    assert shop.http.post("/first/500").status == 500
    assert shop.http.post("/first/500").code == "request_in_progress"
    assert shop.seen(ReleaseFailed) == 1


def test_a_takeover_that_fails_runs_nothing(station: str) -> None:
    """DEG-01 on the second verb: 503, and the next try runs."""
    shop = Counter(station)
    assert shop.http.post("/first/500").status == 500
    shop.store.break_next("take_over")
    assert shop.http.post("/first/500").code == "store_unavailable"
    assert shop.http.post("/first/500").status == 201


def test_a_reservation_whose_answer_got_lost_is_not_a_rival(station: str) -> None:
    """RAC-04: the store said nothing, so the client is told 503, never that somebody else is running."""
    shop = Counter(station)
    shop.store.break_next("reserve", after=True)
    assert shop.http.post().code == "store_unavailable"
    assert shop.http.runs == 0


@pytest.mark.parametrize(
    "error", [ConfigurationError("no such table: run idemcore init-db"), RuntimeError("bug")]
)
def test_a_programs_fault_is_no_clients_business(station: str, error: Exception) -> None:
    """A missing table or a bug is a 500 of the application's, with nothing run and nothing told."""
    shop = Counter(station)
    shop.store.break_next("reserve", error=error)
    got = shop.http.post()
    assert got.status == 500
    assert b"table" not in got.body
    assert shop.http.runs == 0


def test_observers_that_raise_are_not_in_the_way(station: str, caplog: pytest.LogCaptureFixture) -> None:
    """They are logged."""

    def broken(event: Event) -> None:
        raise RuntimeError("observer")

    engine = Engine("memory://", observers=[broken])
    http = Http(InProcess(STATIONS[station](Shop(), engine)))
    assert http.post().status == 201
    assert http.post().replayed
    assert http.post("/first/500", key="k2").status == 500
    assert "observer raised" in caplog.text


def test_damaged_records_are_neither_run_nor_replayed(station: str) -> None:
    """SEC-02: 503, retry later, whatever bytes are in the store."""
    for meta in (b"\x80\x04cposix\nsystem\n", b"[]", b'{"status":"200 OK"}', b'{"status":"x","headers":[]}',
                 b'{"status":"200 OK","headers":[["one"]]}'):  # fmt: skip
        shop = Counter(station)
        shop.http.post()
        identity = identify(f"alice-{shop.http.case}", "http", "key-1")
        record = shop.store.inner.get(identity)
        shop.store.inner._shelf.entries[identity].meta = meta
        assert record is not None
        got = shop.http.post()
        assert got.status == 503
        assert got.code == "record_unreadable"
        assert got["Retry-After"] == "60"
        assert shop.http.runs == 1
        shop.http.post()
        assert shop.seen(RecordDamaged) == 1, "somebody has to look"


def test_refusals_logs_and_events_reveal_nothing(station: str, caplog: pytest.LogCaptureFixture) -> None:
    """SEC: no key, no scope, no body and no path of the first request in anything but its own answer."""
    caplog.set_level(0)
    shop = Counter(station)
    secret = "s3cr3t"
    shop.http.post(
        f"/first/500?token={secret}", key=f"key-{secret}", user=f"user-{secret}", body=b'"%b"' % secret.encode()
    )
    refusals = [
        shop.http.post("/first/500", key=f"key-{secret}", user=f"user-{secret}", body=b"{}"),
        shop.http.post("/first/500", key=secret * 100),
    ]
    for got in refusals:
        assert got.code
        told = f"{got.headers}{got.body!r}"
        assert secret not in told
    assert secret not in caplog.text
    assert secret not in f"{shop.events}{[str(event) for event in shop.events]}{shop.engine}"


@pytest.mark.parametrize("keep", [successes, lambda head: head.status == 402], ids=["kept", "not-kept"])
def test_a_late_finisher_hands_over_the_winners_answer(station: str, keep: Keep) -> None:
    """LEA-03: two ran; both clients are told the one answer that stands, kept or not."""
    shop = Counter(station, keep=keep)
    winner: list[Claim] = []

    def win(claim: Claim, outcome: Any) -> Any:
        if not winner:
            winner.append(claim._replace(token=b"w" * 16))
            shop.store.inner._shelf.entries[claim.identity].token = b"w" * 16
            meta = b'{"status":"202 Accepted","headers":[["X-Winner","yes"],["Content-Type","text/plain"]]}'
            complete(winner[0], Answer("http", meta, b"the winner's"))
        return complete(claim, outcome)

    complete, shop.store.inner.complete = shop.store.inner.complete, win
    got = shop.http.post()
    assert (got.status, got.body, got["X-Winner"]) == (202, b"the winner's", "yes")
    assert got["Location"] is None
    assert got.replayed


def test_memory_under_several_processes_is_warned_of_once(
    station: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """MEM-03: each process would keep records of its own, and a retry that reaches another one runs again."""
    for url, several, warnings in (("memory://", False, 0), ("memory://", True, 1), ("sqlite", True, 0)):
        caplog.clear()
        engine = Engine(f"sqlite:///{tmp_path / station}.db" if url == "sqlite" else url, observers=())
        engine.create_schema()
        app = STATIONS[station](Shop(), engine)

        def served(environ: Any, start_response: Any, app: Any = app, several: bool = several) -> Any:
            return app({**environ, "wsgi.multiprocess": several}, start_response)

        http = Http(InProcess(served))
        assert [http.post(key=key).status for key in ("a", "b")] == [201, 201]
        assert caplog.text.count("several processes") == warnings
        engine.close()
