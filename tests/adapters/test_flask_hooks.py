"""An app's own hooks and errorhandlers, before, around and after the idempotency layer."""

from __future__ import annotations

import gc
import gzip
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, Response, abort, g, got_request_exception, jsonify, request, request_started
from werkzeug.exceptions import Forbidden, HTTPException

from idemcore import SINGLE_TENANT, ConfigurationError, current_attempt
from idemcore.events import OutcomeInDoubt, Settled
from idemcore_flask import Idempotency
from idemcore_wsgi import IdempotencyMiddleware
from tests.adapters.flask_bench import FlaskBench, code_of, replayed


class DomainError(Exception):
    pass


class Timeout(Exception):
    pass


def pay(bench: FlaskBench, act: Callable[[int], Any] = lambda run: None, **options: Any) -> None:
    """Registers the one view: it counts itself, acts, and answers its count."""

    @bench.app.post("/")
    @bench.idempotency.required(**options)
    def view() -> Any:
        run = bench.ran()
        act(run)
        return {"run": run}


def raising(error: Exception, runs: int = 1) -> Callable[[int], None]:
    def act(run: int) -> None:
        if run <= runs:
            raise error

    return act


@pytest.mark.parametrize("status", [200, 422, 500])
def test_an_errorhandlers_answer_is_the_answer(status: int) -> None:
    """OUT-06: what an errorhandler makes of an exception is judged, and kept, like any other answer."""
    bench = FlaskBench().start()
    pay(bench, raising(DomainError(), runs=9))
    bench.app.register_error_handler(
        DomainError, lambda error: (jsonify(error="domain", run=bench.runs), status)
    )
    first, second = bench.twice()
    assert first.status_code == second.status_code == status
    assert first.get_json() == {"error": "domain", "run": 1}
    assert second.get_json()["error"] == "domain"
    assert bench.runs == (1 if status == 200 else 2)


def test_abort_with_a_kept_status_is_kept() -> None:
    """OUT-06: abort() makes an answer like any other."""
    from idemcore.http import final_answers

    bench = FlaskBench().start()
    pay(bench, lambda run: abort(404, f"no such thing {run}"), keep=final_answers)
    first, second = bench.twice()
    assert (first.status_code, second.status_code) == (404, 404)
    assert replayed(second)
    assert second.data == first.data
    assert bench.runs == 1


@pytest.mark.parametrize("handled", [Exception, HTTPException])
def test_refusals_survive_global_errorhandlers(handled: type[Exception]) -> None:
    """HTT-07: an app that renders every error by itself does not swallow what a client must know."""
    bench = FlaskBench().start()
    bench.app.register_error_handler(handled, lambda error: ("swallowed", 500))
    pay(bench)
    bench.post()
    missing, mismatch = bench.post(key=None), bench.post(json={"amount": 11})
    for got, status in ((missing, 400), (mismatch, 422)):
        assert got.status_code == status
        assert got.content_type == "application/problem+json"
        assert got.headers["Cache-Control"] == "no-store"
    assert code_of(mismatch) == "idempotency_key_reuse"


@pytest.mark.parametrize("propagates", [False, True])
def test_an_exception_frees_the_request(propagates: bool) -> None:
    """OUT-03: also where exceptions propagate, as in testing mode, and after_request never runs."""
    bench = FlaskBench().start()
    bench.app.config["PROPAGATE_EXCEPTIONS"] = bench.app.testing = propagates
    pay(bench, raising(DomainError()))
    if propagates:
        with pytest.raises(DomainError):
            bench.post()
    else:
        assert bench.post().status_code == 500
    assert bench.post().get_json() == {"run": 2}
    assert replayed(bench.post())


def test_an_exception_in_a_test_clients_with_block_frees_the_request() -> None:
    """A client that preserves its context still lets the next request of the block run."""
    bench = FlaskBench().start()
    bench.app.testing = True
    pay(bench, raising(DomainError()))
    with bench.app.test_client() as client:
        with pytest.raises(DomainError):
            client.post("/", headers={"Idempotency-Key": "k"})
        assert client.post("/", headers={"Idempotency-Key": "k"}).get_json() == {"run": 2}


def test_a_worker_that_is_stopped_frees_the_request() -> None:
    """LEA-07: SystemExit passes through unchanged."""
    bench = FlaskBench().start()

    def act(run: int) -> None:
        if run == 1:
            raise SystemExit(3)

    pay(bench, act)
    with pytest.raises(SystemExit):
        bench.post()
    assert bench.post().get_json() == {"run": 2}


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("error", [Timeout(), ExceptionGroup("", [Timeout()])], ids=["alone", "in a group"])
def test_an_exception_that_leaves_the_outcome_open(error: Exception, handled: bool) -> None:
    """A provider's timeout is not made harmless by the errorhandler that renders it."""
    bench = FlaskBench().start()
    pay(bench, raising(error), unknown=(Timeout,))
    if handled:
        bench.app.register_error_handler(type(error), lambda error: ("try again", 504))
    assert bench.post().status_code == (504 if handled else 500)
    got = bench.post()
    assert code_of(got) == "outcome_unknown"
    assert "Retry-After" not in got.headers
    assert bench.runs == 1
    assert len([event for event in bench.events if isinstance(event, OutcomeInDoubt)]) == 1


def test_a_hook_that_refuses_first_claims_nothing() -> None:
    """OUT-02: authentication in before_request comes first; its 401 leaves no trace under the key."""
    bench = FlaskBench(scope=lambda: g.user)

    @bench.app.before_request
    def authenticate() -> Any:
        g.user = request.headers.get("Authorization")
        return None if g.user else ("who?", 401)

    bench.start()
    pay(bench)
    assert bench.post().status_code == 401
    assert bench.events == []
    assert bench.post(headers={"Authorization": "alice"}).get_json() == {"run": 1}
    assert bench.post().status_code == 401, "no replay after access was revoked"
    assert replayed(bench.post(headers={"Authorization": "alice"}))


def test_the_order_of_decorators_decides_who_gets_a_replay() -> None:
    """SEC: with the check above the key layer nobody gets a kept answer whom it would refuse now."""
    bench = FlaskBench().start()
    revoked: list[str] = []

    def login_required(view: Callable[..., Any]) -> Callable[..., Any]:
        def checked() -> Any:
            if request.headers["X-User"] in revoked:
                raise Forbidden
            return view()

        return checked

    def view() -> Any:
        return {"run": bench.ran()}

    bench.app.post("/above", endpoint="above")(login_required(bench.idempotency.required(view)))
    bench.app.post("/below", endpoint="below")(bench.idempotency.required(login_required(view)))
    for path in ("/above", "/below"):
        bench.post(path, key=path, headers={"X-User": "alice"})
    revoked.append("alice")
    statuses = [
        bench.post(path, key=path, headers={"X-User": "alice"}).status_code for path in ("/above", "/below")
    ]
    assert statuses == [403, 200], "documented: a check below the key layer is not asked on a replay"


def test_hooks_that_eat_the_body_come_too_late() -> None:
    """HTT-01: an earlier before_request that parses the form leaves the fingerprint and the view alone."""
    bench = FlaskBench()
    seen = []

    @bench.app.before_request
    def parse() -> None:
        seen.append(request.form.get("amount"))

    bench.start()
    pay(bench, lambda run: seen.append(request.form["amount"]))
    bench.post(data={"amount": "10"})
    assert replayed(bench.post(data={"amount": "10"}))
    assert code_of(bench.post(data={"amount": "11"})) == "idempotency_key_reuse"
    assert seen == ["10", "10", "10", "11"]


def test_a_body_consumed_before_us_is_a_configuration_error() -> None:
    """HTT-02: a request is never compared by a body that is gone; one that was cached serves."""
    bench = FlaskBench().start()
    bench.app.testing = True
    pay(bench)
    eat: dict[str, Callable[[Any], Any]] = {
        "form": lambda app, **_: request.form.get("a"),
        "cached": lambda app, **_: request.get_data(),
    }
    for how, works in (("cached", True), ("form", False)):
        with request_started.connected_to(eat[how], bench.app):
            if works:
                assert bench.post(data={"a": "1"}, key=how).get_json() == {"run": 1}
                assert replayed(bench.post(data={"a": "1"}, key=how))
                assert code_of(bench.post(data={"a": "2"}, key=how)) == "idempotency_key_reuse"
                assert bench.post(data=b"", key="empty").get_json() == {"run": 2}
            else:
                with pytest.raises(ConfigurationError):
                    bench.post(data={"a": "1"}, key=how)


def test_what_hooks_change_is_recorded_and_not_doubled() -> None:
    """REP-01, REP-04: compression and headers added after the view are part of the answer, once."""
    bench = FlaskBench().start()

    @bench.app.after_request
    def pack(response: Response) -> Response:
        if "Content-Encoding" not in response.headers:
            response.set_data(gzip.compress(response.get_data(), mtime=0))
            response.headers["Content-Encoding"] = "gzip"
        response.vary.add("Accept-Encoding")
        response.headers.add("X-Seen", "hook")
        response.headers["X-Now"] = str(bench.ran("hook"))
        response.headers["Set-Cookie"] = "fresh=1"
        return response

    pay(bench)
    packed = {"Accept-Encoding": "gzip"}
    first, second = bench.twice(headers=packed)
    assert replayed(second)
    assert second.data == first.data
    assert gzip.decompress(second.data) == b'{"run":1}\n'
    for name in ("Vary", "X-Seen", "X-Now", "Content-Encoding"):
        assert second.headers.getlist(name) == first.headers.getlist(name)
    assert second.headers["Set-Cookie"] == "fresh=1"  # of this moment, not of the record
    plain = bench.post()
    assert "Content-Encoding" not in plain.headers
    assert plain.get_json(force=True) == {"run": 1}


def test_a_header_that_a_newer_release_adds_is_on_replays_too() -> None:
    """REP-01: a Content-Security-Policy stays; what describes the bytes comes from the record."""
    bench = FlaskBench().start()
    released: list[bool] = []

    @bench.app.after_request
    def harden(response: Response) -> Response:
        if released:
            response.headers["Content-Security-Policy"] = "default-src 'none'"
            response.headers["Content-Language"] = "en"
            response.headers["Digest"] = "sha-256=other"
        return response

    pay(bench)
    bench.post()
    released.append(True)
    again = bench.post()
    assert replayed(again)
    assert again.headers["Content-Security-Policy"] == "default-src 'none'"
    assert not {"Content-Language", "Digest"} & set(again.headers.keys())


def test_a_length_that_is_no_number_announces_nothing() -> None:
    """REP-04: a stream under such a length is sent as it comes, as on WSGI, and not held back to its end."""
    bench = FlaskBench().start()
    made: list[int] = []

    def chunks() -> Any:
        for number in range(3):
            made.append(number)
            yield b"%d" % number

    @bench.app.post("/")
    @bench.idempotency.required
    def stream() -> Response:
        return Response(chunks(), headers={"Content-Length": "-5"})

    got = bench.post(buffered=False)
    assert len(made) < 3
    assert b"".join(got.response) == b"012"
    got.close()
    assert bench.post().data == b"012"
    assert made == [0, 1, 2]


def test_a_hook_that_turns_the_answer_down_has_the_last_word() -> None:
    """SEC: a replay whose status a hook changes is not put back."""
    bench = FlaskBench().start()
    revoked: list[int] = []

    @bench.app.after_request
    def check(response: Response) -> Response:
        return Response("no more", 403) if revoked else response

    pay(bench)
    bench.post()
    revoked.append(1)
    got = bench.post()
    assert (got.status_code, got.data) == (403, b"no more")
    assert not replayed(got)


@pytest.mark.parametrize("on_replay", [False, True])
def test_a_hook_that_raises_fails_this_answer_only(on_replay: bool) -> None:
    """A replay that a hook breaks off is a 500, not the kept answer over it; the record stands."""
    bench = FlaskBench().start()
    broken = [] if on_replay else [1]

    @bench.app.after_request
    def check(response: Response) -> Response:
        if broken:
            raise DomainError
        return response

    pay(bench)
    first = bench.post()
    broken[:] = [1] if on_replay else []
    second = bench.post()
    broken.clear()
    third = bench.post()
    if on_replay:
        assert (first.status_code, second.status_code, third.status_code) == (200, 500, 200)
        assert replayed(third)
        assert bench.runs == 1
    else:
        assert (first.status_code, second.status_code) == (500, 200)
        assert bench.runs == 2  # its client got a 500, and a 500 is tried again


def test_two_hooks_that_raise_leave_a_claim_that_ends() -> None:
    """Where nothing of ours is called any more, the attempt is forgotten and its lease runs out."""
    bench = FlaskBench().start()
    bench.app.testing = True

    @bench.app.after_request
    def first(response: Response) -> Response:
        raise DomainError

    @bench.app.teardown_request
    def second(error: BaseException | None) -> None:
        raise Timeout

    pay(bench)
    with pytest.raises((DomainError, Timeout)):
        bench.post()
    gc.collect()
    held = [held for held in bench.idem.keeper._watched.values() if held() is not None]
    assert held == []


def test_current_attempt_and_its_ways_out() -> None:
    """release, forget and tombstone in a view count before the answer's status."""
    bench = FlaskBench().start()
    ways = {1: "release", 2: "forget", 3: "refuse"}

    def act(run: int) -> None:
        if run in ways:
            getattr(current_attempt(), ways[run])()
        elif run == 4:
            current_attempt().tombstone("secret")

    pay(bench, act)
    assert [bench.post().get_json() for _ in range(4)] == [{"run": run} for run in (1, 2, 3, 4)]
    assert code_of(bench.post()) == "response_not_replayable"
    settled = [event.settlement.name for event in bench.events if isinstance(event, Settled)]
    assert settled == ["RETRY", "RETRY", "RETRY", "TOMBSTONE"]
    with pytest.raises(ConfigurationError):
        current_attempt()


def test_the_apps_exception_signal_still_fires() -> None:
    """Exceptions pass through unwrapped."""
    bench = FlaskBench().start()
    error, seen = DomainError(), []
    pay(bench, raising(error))

    def note(sender: Any, exception: BaseException, **_: Any) -> None:
        seen.append(exception)

    with got_request_exception.connected_to(note, bench.app):
        bench.post()
    assert seen == [error]


def test_an_app_inside_a_view_leaves_the_outer_claim_alone() -> None:
    """An app that is called with the outer one's environment answers for itself: 404 frees no outer key."""
    bench = FlaskBench().start()
    inner = Flask("inner")
    Idempotency(inner, engine=bench.idem, scope=SINGLE_TENANT)

    @inner.post("/")
    def audit() -> Any:
        return {"audit": "none"}, 404

    @bench.app.post("/")
    @bench.idempotency.required
    def pay() -> Any:
        Response.from_app(inner.wsgi_app, request.environ)
        return {"run": bench.ran()}, 201

    first, again = bench.post(), bench.post()
    assert (first.status_code, bench.runs) == (201, 1)
    assert replayed(again)
    assert again.get_json() == {"run": 1}


def test_two_layers_over_one_engine_are_one_claim() -> None:
    """WSGI middleware around a protected Flask view, same scope: the outer claim covers the inner one."""
    bench = FlaskBench().start()
    bench.app.post("/")(bench.idempotency.required(lambda: ({"run": bench.ran()}, 201)))
    bench.app.wsgi_app = IdempotencyMiddleware(  # type: ignore[method-assign]
        bench.app.wsgi_app, bench.idem, scope=SINGLE_TENANT
    )
    first, again = bench.post(), bench.post()
    assert (first.status_code, again.status_code, bench.runs) == (201, 201, 1)
    assert replayed(again)


def test_another_request_under_the_key_in_use_is_not_covered_by_its_claim() -> None:
    """KEY-05: a view that calls its own app with its own key and another body is refused there, at once."""
    bench = FlaskBench().start()
    inner: list[int] = []

    @bench.app.post("/")
    @bench.idempotency.required
    def pay() -> Any:
        if request.get_json()["amount"] == 10:
            inner.append(bench.post(json={"amount": 99}).status_code)
        return {"run": bench.ran()}

    assert bench.post().status_code == 200
    assert (inner, bench.runs) == ([422], 1)
