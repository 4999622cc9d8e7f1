"""Whatever a Flask view may be and may return is run once and given back as it was."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from flask import (
    Blueprint,
    Flask,
    Response,
    after_this_request,
    jsonify,
    make_response,
    redirect,
    request,
    send_file,
    session,
    stream_with_context,
)
from flask.views import MethodView, View

from idemcore import SINGLE_TENANT, Engine, current_attempt
from idemcore_flask import Idempotency
from tests.adapters.flask_bench import FlaskBench, code_of, replayed

RETURNS: dict[str, Callable[[], Any]] = {
    "dict": lambda: {"b": 1, "a": [1.5]},
    "list": lambda: [1, 2],
    "str": lambda: "text é",
    "bytes": lambda: b"\x00\xff",
    "tuple": lambda: ({"id": 1}, 201, {"Location": "/1"}),
    "tuple with headers": lambda: ("made", [("X-A", "1"), ("X-A", "2")]),
    "jsonify": lambda: jsonify(id=1),
    "response": lambda: Response("x,y", 200, mimetype="text/csv"),
    "redirect": lambda: redirect("/payments/1", 303),
    "generator": lambda: (part for part in ("one ", "two")),
    "stream_with_context": lambda: Response(stream_with_context(_parts()), mimetype="text/plain"),
    "send_file": lambda: send_file(io.BytesIO(b"content"), "application/pdf", download_name="a.pdf"),
    "send_file from disk": lambda: send_file(Path(__file__).resolve()),
    "no content": lambda: ("", 204),
    "empty": lambda: "",
}


def _parts() -> Iterator[str]:
    yield "one "
    yield request.headers["Idempotency-Key"]


@pytest.mark.parametrize("kind", RETURNS)
@pytest.mark.parametrize("everywhere", [False, True])
def test_every_kind_of_result_replays(kind: str, everywhere: bool) -> None:
    """REP-08: status, body, type and headers of a replay equal the first answer's."""
    bench = FlaskBench(protect="optional" if everywhere else None).start()

    def view() -> Any:
        bench.ran()
        return RETURNS[kind]()

    bench.app.post("/")(view if everywhere else bench.idempotency.required(view))
    first, second = bench.twice()
    assert bench.runs == 1
    assert replayed(second)
    assert (second.status, second.data) == (first.status, first.data)
    told, again = ([field for field in got.headers if field[0] != "Date"] for got in (first, second))
    added = {name for name, _ in again} - {name for name, _ in told}
    assert sorted(field for field in again if field[0] not in added) == sorted(told)
    assert added <= {"Idempotent-Replayed", "Content-Length"}


READS: dict[str, Callable[[], Any]] = {
    "get_json": lambda: request.get_json()["a"],
    "get_data": lambda: request.get_data(as_text=True),
    "form": lambda: request.form["a"],
    "values": lambda: request.values["a"],
    "files": lambda: request.files["a"].read().decode(),
    "stream": lambda: request.stream.read().decode(),
    "stream by lines": lambda: next(iter(request.stream)).decode(),
    "wsgi.input": lambda: request.environ["wsgi.input"].read(request.content_length).decode(),
}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("reading", READS)
def test_a_view_reads_its_body_in_every_way(reading: str, chunked: bool) -> None:
    """HTT-01: the body was read for the fingerprint and is still all there."""
    bench = FlaskBench().start()

    @bench.app.post("/")
    @bench.idempotency.required
    def view() -> Any:
        return {"read": READS[reading]()}

    sent: dict[str, Any] = {"data": "content", "content_type": "text/plain"}
    if reading == "get_json":
        sent = {"json": {"a": "content"}}
    elif reading in ("form", "values"):
        sent = {"data": {"a": "content"}}
    elif reading == "files":
        sent = {"data": {"a": (io.BytesIO(b"content"), "a.txt")}}
    environ: dict[str, Any] = {"wsgi.input_terminated": True} if chunked else {}
    first = bench.post(environ_overrides=environ, **sent)
    assert first.get_json() == {"read": "content"}


def test_a_method_view_is_protected_method_by_method() -> None:
    """HTT-06: a decorated method is, its siblings are not; names and attributes stay."""
    bench = FlaskBench().start()

    class Payments(MethodView):
        @bench.idempotency.required
        def post(self) -> Any:
            """Doc."""
            return {"run": bench.ran(), "number": current_attempt().number}

        def patch(self) -> Any:
            return {"run": bench.ran("patch")}

    assert Payments.post.__doc__ == "Doc."
    bench.app.add_url_rule("/", view_func=Payments.as_view("payments"))
    first, second = bench.twice()
    assert first.get_json() == second.get_json() == {"run": 1, "number": 1}
    assert replayed(second)
    assert code_of(bench.post(key=None)) == "idempotency_key_missing"
    assert [bench.post(method="PATCH").get_json()["run"] for _ in range(2)] == [1, 2]


def test_a_methods_own_word_counts_before_its_class_and_the_app() -> None:
    """The nearest decorator decides, whichever method is asked for first."""
    bench = FlaskBench(protect="required").start()

    class Payments(MethodView):
        @bench.idempotency.optional
        def post(self) -> Any:
            return {"run": bench.ran()}

        def patch(self) -> Any:
            return {"run": bench.ran()}

        @bench.idempotency.exempt
        def put(self) -> Any:
            return {"run": bench.ran()}

    class Transfers(Payments):
        decorators: ClassVar = [bench.idempotency.required(methods=["POST", "PATCH", "PUT"])]

    bench.app.add_url_rule("/payments", view_func=Payments.as_view("payments"))
    bench.app.add_url_rule("/transfers", view_func=Transfers.as_view("transfers"))
    for path in ("/payments", "/transfers"):
        assert code_of(bench.post(path, method="PATCH", key=None)) == "idempotency_key_missing"
        assert bench.post(path, key=None).status_code == 200
        first, second = bench.twice(path, method="PUT", key=f"put-{path}")
        assert first.get_json() != second.get_json()
        assert replayed(bench.twice(path, key=f"post-{path}")[1])


def test_a_class_based_view_under_its_decorators() -> None:
    """View.decorators wrap the whole view."""
    bench = FlaskBench().start()

    class Pay(View):
        methods: ClassVar = ["POST"]
        decorators: ClassVar = [bench.idempotency.required]

        def dispatch_request(self) -> Any:
            return {"run": bench.ran()}

    bench.app.add_url_rule("/", view_func=Pay.as_view("pay"))
    assert replayed(bench.twice()[1])


@pytest.mark.parametrize("everywhere", [False, True])
def test_async_views_run_once(everywhere: bool) -> None:
    """Async functions and methods are awaited inside of the attempt, and their answers kept."""
    bench = FlaskBench(protect="optional" if everywhere else None).start()
    protect: Callable[..., Any] = (lambda view: view) if everywhere else bench.idempotency.required

    @bench.app.post("/")
    @protect
    async def view() -> Any:
        return {"run": bench.ran(), "number": current_attempt().number}

    class Payments(MethodView):
        @protect
        async def post(self) -> Any:
            return {"run": bench.ran()}

    bench.app.add_url_rule("/class", view_func=Payments.as_view("payments"))
    first, second = bench.twice()
    assert first.get_json() == second.get_json() == {"run": 1, "number": 1}
    assert replayed(second)
    assert replayed(bench.twice("/class", key="k2")[1])


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("kind", ["coroutine", "async_generator"])
def test_a_view_that_returns_what_flask_cannot_send_is_an_error_and_no_answer(kind: str, block: bool) -> None:
    """FUN-07: nothing of it ran; Flask answers 500, and the policy decides as after any other."""
    bench = FlaskBench(on_abandoned="block" if block else "rerun").start()

    async def pays() -> dict[str, int]:
        return {"run": bench.ran()}

    async def streams() -> AsyncIterator[bytes]:
        yield b"%d" % bench.ran()

    made: list[Any] = []

    @bench.app.post("/")
    @bench.idempotency.required
    def view() -> Any:
        made.append(pays() if kind == "coroutine" else streams())
        return made[-1] if len(made) == 1 else {"run": bench.ran()}

    first, second = bench.twice()
    assert first.status_code == 500
    assert (second.status_code, bench.runs) == ((409, 0) if block else (200, 1))
    for each in made:
        if kind == "coroutine":
            each.close()


def test_a_view_that_returns_a_generator_works_while_it_is_read() -> None:
    """That is a stream: its claim stands until its end, and what it came to is kept."""
    bench = FlaskBench().start()

    @bench.app.post("/")
    @bench.idempotency.required
    def view() -> Any:
        return (b"%d" % bench.ran() for _ in range(2))

    first, second = bench.twice()
    assert (first.data, second.data, bench.runs) == (b"12", b"12", 2)
    assert replayed(second)


def test_a_header_that_no_server_can_send_is_no_answer_to_keep() -> None:
    """SEC: a retry is told that the work is done, and does not break its own server."""
    bench = FlaskBench().start()

    @bench.app.post("/")
    @bench.idempotency.required
    def view() -> Any:
        return {"run": bench.ran()}, 201, {"X-Price": "5 \u20ac"}

    first, second = bench.twice()
    assert (first.status_code, second.status_code, bench.runs) == (201, 422, 1)
    assert code_of(second) == "response_not_replayable"


def test_blueprints_nest() -> None:
    """HTT-06: views of blueprints, nested too, per route and app-wide; no endpoint clashes."""
    bench = FlaskBench(protect="optional").start()
    outer, inner = Blueprint("outer", __name__, url_prefix="/o"), Blueprint("inner", __name__, url_prefix="/i")

    @inner.before_request
    def touch() -> None:
        request.form.get("eats the stream")

    @inner.post("/a")
    @bench.idempotency.required(lease=bench.idem.policy.lease)
    def pay() -> Any:
        return {"run": bench.ran(), "body": request.get_json(silent=True)}

    @inner.post("/b")
    def charge() -> Any:
        return {"run": bench.ran()}

    outer.register_blueprint(inner)
    bench.app.register_blueprint(outer)
    assert pay.__name__ == "pay"
    for path in ("/o/i/a", "/o/i/b"):
        first, second = bench.twice(path, key=path)
        assert replayed(second)
        assert second.data == first.data
    assert code_of(bench.post("/o/i/a", key=None)) == "idempotency_key_missing"


def test_a_view_keeps_its_name_and_attributes() -> None:
    """HTT-06: what other extensions read of a view is still there, per route and app-wide."""
    bench = FlaskBench(protect="optional").start()

    def view() -> Any:
        """Doc."""
        return {"run": bench.ran()}

    view.cost = 7  # type: ignore[attr-defined]
    marked: Any = bench.idempotency.required(view)
    assert (marked.__name__, marked.__doc__, marked.cost, marked.__wrapped__) == ("view", "Doc.", 7, view)
    bench.app.post("/")(view)
    bench.post()
    wrapped: Any = bench.app.view_functions["view"]
    assert (wrapped.__name__, wrapped.cost) == ("view", 7)
    assert replayed(bench.post())
    assert bench.app.view_functions["view"] is wrapped


def test_any_callable_may_be_a_view() -> None:
    """HTT-06: an object without attributes of its own too, per route and app-wide."""

    class Pay:
        __slots__ = ("bench",)
        __name__ = "pay"

        def __call__(self) -> Any:
            return {"run": self.bench.ran()}

    for everywhere in (False, True):
        bench = FlaskBench(protect="optional" if everywhere else None).start()
        pay = Pay()
        pay.bench = bench
        bench.app.add_url_rule(
            "/", "pay", pay if everywhere else bench.idempotency.required(pay), methods=["POST"]
        )
        assert replayed(bench.twice()[1])


def test_a_protected_view_inside_of_another_is_covered_by_it() -> None:
    """One request makes one claim; the inner decorator adds nothing."""
    bench = FlaskBench().start()

    @bench.idempotency.required
    def inner() -> Any:
        return {"run": bench.ran(), "number": current_attempt().number}

    bench.app.post("/")(bench.idempotency.required(lambda: inner()))
    assert replayed(bench.twice()[1])
    assert bench.runs == 1


def test_a_protected_function_speaks_for_itself_under_words_that_do_not_apply() -> None:
    """HTT-06: without a key the optional words on its method and class pass it on; it still asks for one."""
    bench = FlaskBench().start()
    charge = bench.idempotency.required(lambda: {"run": bench.ran()})

    class Pay(MethodView):
        decorators: ClassVar = [bench.idempotency.optional]

        @bench.idempotency.optional
        def post(self) -> Any:
            return charge()

    bench.app.add_url_rule("/", view_func=Pay.as_view("pay"))
    assert code_of(bench.post(key=None)) == "idempotency_key_missing"
    assert bench.runs == 0
    assert replayed(bench.twice()[1])


def test_callbacks_of_the_first_request_run_once() -> None:
    """call_on_close and after_this_request belong to the run, not to its replays."""
    bench = FlaskBench().start()

    @bench.app.post("/<kind>")
    @bench.idempotency.required
    def view(kind: str) -> Any:
        @after_this_request
        def note(response: Response) -> Response:
            response.headers["X-Noted"] = str(bench.ran("after"))
            return response

        response = make_response("body" if kind == "whole" else iter(["bo", "dy"]))
        response.call_on_close(lambda: bench.ran(f"closed {kind}"))
        return response

    for kind in ("whole", "stream"):
        first, second = bench.twice(f"/{kind}", key=kind, buffered=True)
        assert replayed(second)
        assert second.headers["X-Noted"] == first.headers["X-Noted"]
        assert bench.counts[f"closed {kind}"] == 1
    assert bench.counts["after"] == 2


def test_the_session_cookie_stays_with_its_client() -> None:
    """REP-02: the session is saved after the answer was recorded, and never kept."""
    bench = FlaskBench().start()

    @bench.app.post("/")
    @bench.idempotency.required
    def view() -> Any:
        session["user"] = "alice"
        return {"run": bench.ran()}

    first, second = bench.twice()
    assert "session=" in first.headers["Set-Cookie"]
    assert replayed(second)
    assert "Set-Cookie" not in second.headers


def test_a_file_on_its_way_is_closed_once() -> None:
    """HTT-04: a sent file is closed exactly once, read whole or streamed, to its end or not."""

    class Counted(io.BytesIO):
        closes = 0

        def close(self) -> None:
            type(self).closes += 1
            super().close()

    bench = FlaskBench().start()
    bench.app.post("/")(bench.idempotency.required(lambda: send_file(Counted(b"x" * 100_000), "text/plain")))
    for key, buffered in (("a", True), ("b", False)):
        Counted.closes = 0
        first = bench.post(key=key, buffered=buffered)
        if buffered:
            assert len(first.data) == 100_000
        first.close()
        assert Counted.closes == 1
        assert bench.post(key=key).data == b"x" * 100_000
        assert Counted.closes == 1


def test_two_webhooks_may_get_one_event_id() -> None:
    """KEY-02: ids of different senders are equal by chance; each route has its own, whatever it excludes."""
    bench = FlaskBench().start()
    for route, options in (("/cards", {}), ("/mails", {"exclude": ["/attempt"]})):
        view = bench.idempotency.required(key="/id", **options)(lambda: {"run": bench.ran()})
        bench.app.add_url_rule(route, route, view, methods=["POST"])
    event = {"id": "evt_1", "attempt": 1}
    assert [bench.post(route, key=None, json=event).status_code for route in ("/cards", "/mails")] == [200, 200]
    assert bench.runs == 2
    assert replayed(bench.post("/mails", key=None, json={"id": "evt_1", "attempt": 2}))


@pytest.mark.parametrize("by", ["host", "subdomain"])
def test_an_operation_by_route_has_the_host_that_its_rule_names(by: str) -> None:
    """KEY-04: eu. and us. are two views, and a rule for every tenant's host is one operation for each."""
    app = Flask("hosts", host_matching=by == "host", static_host="s" if by == "host" else None)
    if by == "subdomain":
        app.subdomain_matching = True
        app.config["SERVER_NAME"] = "shop.example"
    ran: list[str] = []
    idempotency = Idempotency(
        app, engine=Engine("memory://", observers=()), scope=SINGLE_TENANT, operation="route"
    )

    def view(**_: str) -> str:
        ran.append(request.host)
        return request.host

    end = ".shop.example" if by == "host" else ""
    for name in ("eu", "us", "<tenant>"):
        rule: dict[str, Any] = {by: name + end}
        app.add_url_rule("/pay", name, idempotency.required(view), methods=["POST"], **rule)
    hosts = [f"{name}.shop.example" for name in ("eu", "us", "t-7", "t-8")]
    for _ in range(2):
        for host in hosts:
            got = app.test_client().post("/pay", base_url=f"http://{host}", headers={"Idempotency-Key": "k"})
            assert got.text == host
    assert ran == hosts
