"""Setting the extension up: apps, settings, options, and what goes wrong at start-up rather than later."""

from __future__ import annotations

import functools
import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from flask import Flask, abort, request
from flask.views import MethodView

from idemcore import SINGLE_TENANT, ConfigurationError, Engine, MemoryStore
from idemcore.http import HTTPOptions
from idemcore_flask import Idempotency
from idemcore_flask.protection import Protection
from tests.adapters.flask_bench import FlaskBench, code_of, replayed

CONFLICT = {"idempotency_key_reuse": 409}
DURATIONS = ("wait", "retention", "lease", "max_hold")


def counting(bench: FlaskBench) -> Any:
    return lambda: {"run": bench.ran()}


def test_one_extension_serves_several_apps() -> None:
    """State is in each app: engines, options and switches of two apps do not meet."""
    idempotency = Idempotency()
    benches = FlaskBench(), FlaskBench(statuses=CONFLICT)

    @idempotency.required
    def view() -> Any:
        return {"run": benches[0].ran()}

    for bench in benches:
        bench.idempotency = idempotency
        bench.start()
        bench.app.add_url_rule("/", view_func=view, methods=["POST"])
        bench.post()
    assert benches[0].runs == 2
    assert [bench.post(json={}).status_code for bench in benches] == [422, 409]


def test_two_apps_on_one_store_share_their_keys() -> None:
    """MEM-03: the same request at another mount with the same engine is the same request."""
    store = MemoryStore()
    benches = FlaskBench(store=store), FlaskBench(store=store)
    for bench in benches:
        bench.start().app.post("/")(bench.idempotency.required(counting(bench)))
    benches[0].post()
    assert replayed(benches[1].post())


def test_what_the_extension_was_made_with_counts_in_each_app() -> None:
    """An extension object with options and no app drops none of them; what init_app is given counts first."""
    idem, other = Engine("memory://"), Engine("memory://")
    idempotency = Idempotency(
        engine=idem, scope=lambda: "a", protect="required", statuses=CONFLICT, header="X-Key"
    )
    first, second = Flask("first"), Flask("second")
    first.config.update(IDEMCORE_STORE="nonsense://", IDEMCORE_PROTECT="optional", IDEMCORE_HEADER="X-Other")
    idempotency.init_app(first)
    idempotency.init_app(second, engine=other, scope=SINGLE_TENANT, protect="optional", header="X-Mine")
    for app in (first, second):
        app.post("/")(lambda: "done")
    client, another = first.test_client(), second.test_client()
    assert [client.post("/", headers={"X-Key": "k"}, data=data).status_code for data in "ab"] == [200, 409]
    assert [another.post("/", headers={"X-Mine": "k"}, data=data).status_code for data in "ab"] == [200, 409]
    assert (client.post("/").status_code, another.post("/").status_code) == (400, 200)
    assert first.extensions["idemcore"].engine is idem
    assert second.extensions["idemcore"].engine is other


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "tenant"},
        {"engine": "memory://"},
        {"protect": "requird"},
        {"retentoin": timedelta(days=3)},
        {"lease": timedelta(hours=1), "max_hold": timedelta(minutes=1)},
    ],
    ids=str,
)
def test_a_wrong_option_of_an_extension_without_an_app_fails_at_once(wrong: Any) -> None:
    """At import, not in a factory that may never be told."""
    with pytest.raises(ConfigurationError):
        Idempotency(**wrong)


def test_an_app_is_set_up_once() -> None:
    """Hooks that hang twice would claim twice."""
    bench = FlaskBench().start()
    with pytest.raises(ConfigurationError, match="set up already"):
        bench.start()


def test_an_app_that_was_not_set_up_says_so() -> None:
    """A decorated view does not run unprotected because init_app was forgotten."""
    app = Flask("forgotten")
    app.testing = True
    app.post("/")(Idempotency().required(lambda: "ran"))
    with pytest.raises(ConfigurationError, match="init_app"):
        app.test_client().post("/", headers={"Idempotency-Key": "k"})


def test_settings_come_from_the_apps_configuration() -> None:
    """IDEMCORE_* names a store, a mode and every option; what is given in code counts first."""
    app = Flask("configured")
    app.config.update(
        IDEMCORE_STORE="memory://",
        IDEMCORE_PROTECT="required",
        IDEMCORE_STATUSES=CONFLICT,
        IDEMCORE_HEADER="X-Key",
        IDEMCORE_METHODS=["POST", "PUT"],
    )
    Idempotency(app, scope=SINGLE_TENANT, header="X-Other-Key")
    app.add_url_rule("/", view_func=lambda: "ran", methods=["POST", "PUT"])
    client = app.test_client()
    assert client.put("/").status_code == 400
    assert client.put("/", headers={"X-Other-Key": "k"}).status_code == 200
    assert client.put("/", headers={"X-Other-Key": "k"}, data="other").status_code == 409


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("IDEMCORE_RETENTON", "did you mean 'IDEMCORE_RETENTION'"),
        ("IDEMCORE_ENABLE", "did you mean 'IDEMCORE_ENABLED'"),
        ("IDEMCORE_URL", r"no setting 'IDEMCORE_URL'\.$"),
        ("IDEMCORE_DURABLE", r"no setting 'IDEMCORE_DURABLE'\.$"),
        ("IDEMCORE_TABEL", "did you mean 'IDEMCORE_TABLE'"),
        ("IDEMCORE_FAST", "IDEMCORE_FAST is read from the environment of the process"),
    ],
)
def test_a_setting_that_nobody_reads_is_refused(name: str, says: str) -> None:
    """DEG-01: a slip in a name would leave what guards payments on its default, unseen."""
    app = Flask("slip")
    app.config.update({"IDEMCORE_STORE": "memory://", "OTHER_RETENTON": 1})
    Idempotency(app, scope=SINGLE_TENANT)
    wrong = Flask("slip")
    wrong.config.update({"IDEMCORE_STORE": "memory://", name: 1})
    with pytest.raises(ConfigurationError, match=says):
        Idempotency(wrong, scope=SINGLE_TENANT)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"IDEMCORE_STORE": "redis://127.0.0.1", "IDEMCORE_TABLE": "kept"}, "STORE, IDEMCORE_TABLE: .* none"),
        (
            {"IDEMCORE_STORE": "memory://", "IDEMCORE_SCHEMA": "s"},
            "STORE, IDEMCORE_SCHEMA: .* has none",
        ),
        ({"IDEMCORE_STORE": "sqlite:///kept.db", "IDEMCORE_TABLE": 3}, "IDEMCORE_TABLE is a text, not int"),
    ],
    ids=str,
)
def test_a_table_that_its_store_cannot_have_is_refused(settings: dict[str, Any], says: str) -> None:
    """And told by the names of the settings."""
    app = Flask("wrong")
    app.config.update(settings)
    with pytest.raises(ConfigurationError, match=says):
        Idempotency(app, scope=SINGLE_TENANT)


def test_a_table_of_another_name_may_be_a_setting(tmp_path: Path) -> None:
    """The same two names as on the command line, so both look at the same records."""
    url = f"sqlite:///{tmp_path}/kept.db"
    app = Flask("configured")
    app.config.update(IDEMCORE_STORE=url, IDEMCORE_TABLE="kept", IDEMCORE_SCHEMA="")
    idempotency = Idempotency(app, scope=SINGLE_TENANT)
    app.post("/")(idempotency.required(lambda: "ran"))
    engine = app.extensions["idemcore"].engine
    engine.create_schema()
    app.test_client().post("/", headers={"Idempotency-Key": "k"})
    with closing(sqlite3.connect(tmp_path / "kept.db")) as database:
        assert database.execute("SELECT count(*) FROM kept").fetchone() == (1,)
    engine.close()


def test_a_table_beside_an_engine_of_ones_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not be read; an app that takes its whole environment over has the command line's too."""
    names = ("IDEMCORE_TABLE", "IDEMCORE_SCHEMA", "IDEMCORE_FAST")
    for name in names[:2]:
        app = Flask("wrong")
        app.config[name] = "0"
        with pytest.raises(ConfigurationError, match=f"{name} would not be read"):
            Idempotency(app, engine=Engine("memory://"), scope=SINGLE_TENANT)
    for name in names:
        monkeypatch.setenv(name, "0")
    app = Flask("whole environment")
    app.config.from_mapping({name: os.environ[name] for name in names})
    Idempotency(app, engine=Engine("memory://"), scope=SINGLE_TENANT)


WRONG: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(DURATIONS, ("6", "a number of seconds or a timedelta, not str '6'")),
    **dict.fromkeys(("fail_open", "keep_body"), ("perhaps", "1, true, 0 or false; not 'perhaps'")),
    **dict.fromkeys(("max_request_bytes", "max_response_bytes"), ("1000", "a number of bytes")),
    "identity": ("content", "'key' or 'key+content', not 'content'"),
    "on_mismatch": ("replay", "'refuse' or 'ignore', not 'replay'"),
    "on_abandoned": ("retry", "'rerun' or 'block', not 'retry'"),
    "operation": ("method", "'http' or 'route', not 'method'"),
    "statuses": ('{"a": 1}', "a mapping"),
}
"""What an environment may hold, and what is wanted."""


@pytest.mark.parametrize("name", HTTPOptions.__annotations__)
def test_a_setting_of_a_wrong_kind_is_told_by_its_name(name: str) -> None:
    """DEG-01: with what was found, and what is wanted; each option has a value that is none."""
    value, says = WRONG.get(name, (3.5, ""))
    app = Flask("wrong")
    app.config.update({"IDEMCORE_STORE": "memory://", f"IDEMCORE_{name.upper()}": value})
    with pytest.raises(ConfigurationError, match=f"IDEMCORE_{name.upper()}") as caught:
        Idempotency(app, scope=SINGLE_TENANT)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"IDEMCORE_STORE": "postgres//root:hunter2@db/shop"}, "IDEMCORE_STORE: A store is named by a URL"),
        ({"IDEMCORE_STORE": "nosuch://root:hunter2@db/shop"}, "IDEMCORE_STORE: No store is known for 'nosuch:"),
        ({"IDEMCORE_STORE": 3}, "IDEMCORE_STORE: An engine takes a store or a URL, not int"),
        (
            {"IDEMCORE_PROTECT": "always"},
            "IDEMCORE_PROTECT: protect is 'optional', 'required' or None, not 'alw",
        ),
        (
            {"IDEMCORE_SWEEP_EVERY": "3600"},
            "IDEMCORE_SWEEP_EVERY is a number of seconds or a timedelta, not str",
        ),
        ({"IDEMCORE_SWEEP_EVERY": -1}, "IDEMCORE_SWEEP_EVERY: every is a datetime.timedelta longer than zero"),
        ({"IDEMCORE_LEASE": float("nan")}, "IDEMCORE_LEASE is a number of seconds"),
        ({"IDEMCORE_RETENTION": 1e300}, "IDEMCORE_RETENTION is a number of seconds"),
        ({"IDEMCORE_LEASE": -1}, "IDEMCORE_LEASE: Policy.lease must be longer than zero"),
        ({"IDEMCORE_LEASE": 3600}, "IDEMCORE_LEASE: Policy.lease is longer than max_hold"),
        (
            {"IDEMCORE_LEASE": 5, "IDEMCORE_MAX_HOLD": 3},
            "IDEMCORE_LEASE, IDEMCORE_MAX_HOLD: Policy.lease is long",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_setting_is_told_by_its_name(settings: dict[str, Any], says: str) -> None:
    """DEG-01: of settings that are no option's too, and of those that do not go together; no password is."""
    app = Flask("wrong")
    app.config.update({"IDEMCORE_STORE": "memory://", **settings})
    with pytest.raises(ConfigurationError) as caught:
        Idempotency(app, scope=SINGLE_TENANT)
    assert says in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_settings_give_durations_in_seconds() -> None:
    """A file or an environment has no timedelta; what is no duration still fails at start-up."""
    app = Flask("configured")
    app.config.update(IDEMCORE_STORE="memory://", IDEMCORE_LEASE=7, IDEMCORE_RETENTION=3600.5)
    Idempotency(app, scope=SINGLE_TENANT)
    policy = app.extensions["idemcore"].guard(Protection("optional", {})).policy
    assert (policy.lease, policy.retention) == (timedelta(seconds=7), timedelta(seconds=3600.5))


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": None},
        {"scope": "tenant"},
        {"engine": None},
        {"protect": "always"},
        {"statuses": {"idempotency_key_reuse": 200}},
        {"methods": ["GET"]},
        {"methods": "POST"},
        {"exclude": ["/bad/~2"]},
        {"retention": 3600},
        {"lease": timedelta(hours=1)},
        {"max_request_bytes": -1},
    ],
)
def test_a_wrong_option_fails_at_start_up(wrong: dict[str, Any]) -> None:
    """Not at the first payment."""
    options: dict[str, Any] = {"engine": Engine("memory://"), "scope": SINGLE_TENANT, **wrong}
    with pytest.raises(ConfigurationError):
        Idempotency(Flask("wrong"), **options)


def test_a_wrong_option_of_a_route_fails_where_it_stands() -> None:
    """At import, beside the view."""
    with pytest.raises(ConfigurationError):
        Idempotency().required(statuses={"no_such_code": 409})
    with pytest.raises(ConfigurationError, match="retention"):
        Idempotency().required(retention_days=3)  # type: ignore[call-arg]


def test_a_route_passes_only_what_differs() -> None:
    """The app's options stand underneath the route's."""
    bench = FlaskBench(statuses=CONFLICT, header="X-Key").start()
    bench.app.post("/a", endpoint="a")(bench.idempotency.required(counting(bench)))
    bench.app.post("/b", endpoint="b")(bench.idempotency.required(statuses={})(counting(bench)))
    for path, status in (("/a", 409), ("/b", 422)):
        bench.post(path, key=None, headers={"X-Key": path})
        assert bench.post(path, key=None, headers={"X-Key": path}, json={}).status_code == status


def test_exempt_views_stay_out_of_app_wide_protection() -> None:
    """`exempt` leaves a view alone, with a key and without."""
    bench = FlaskBench(protect="required").start()
    bench.app.post("/")(bench.idempotency.exempt(counting(bench)))
    assert [bench.post(key=key).get_json()["run"] for key in ("k", "k", None)] == [1, 2, 3]


def test_the_switch_turns_everything_off() -> None:
    """IDEMCORE_ENABLED=False: no key is asked for, nothing is kept; it may be turned in a test."""
    bench = FlaskBench(protect="required").start()
    bench.app.post("/")(counting(bench))
    bench.app.config["IDEMCORE_ENABLED"] = False
    assert [bench.post(key=key).get_json()["run"] for key in ("k", "k", None)] == [1, 2, 3]
    bench.app.config["IDEMCORE_ENABLED"] = True
    assert code_of(bench.post(key=None)) == "idempotency_key_missing"


@pytest.mark.parametrize(
    ("text", "means"),
    [("0", False), ("false", False), ("False", False), ("1", True), ("true", True), ("TRUE", True), (0, False),
     (1, True), (False, False), (True, True)],
)  # fmt: skip
def test_switches_may_be_texts_of_an_environment(text: Any, means: bool) -> None:
    """DEG-01: "0" and "false" mean no; as texts that are not empty they would have counted as yes."""
    app = Flask("environment")
    names = ("IDEMCORE_ENABLED", "IDEMCORE_FAIL_OPEN", "IDEMCORE_KEEP_BODY")
    app.config.update({"IDEMCORE_STORE": "memory://", **dict.fromkeys(names, text)})
    app.post("/")(lambda: "ran")
    Idempotency(app, scope=SINGLE_TENANT, protect="required")
    policy = app.extensions["idemcore"].guard(Protection("optional", {})).policy
    assert (policy.fail_open, policy.keep_body) == (means, means)
    assert app.test_client().post("/").status_code == (400 if means else 200)


def test_settings_are_taken_from_a_prefixed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """DEG-01: as Flask reads them, where it can as JSON."""
    monkeypatch.setenv("FLASK_IDEMCORE_STORE", "memory://")
    monkeypatch.setenv("FLASK_IDEMCORE_RETENTION", "3600")
    monkeypatch.setenv("FLASK_IDEMCORE_METHODS", '["POST", "PUT"]')
    app = Flask("environment")
    app.config.from_prefixed_env()
    Idempotency(app, scope=SINGLE_TENANT)
    policy = app.extensions["idemcore"].guard(Protection("optional", {})).policy
    assert (policy.retention, policy.methods) == (timedelta(hours=1), {"POST", "PUT"})


@pytest.mark.parametrize("name", ["IDEMCORE_ENABLED", "IDEMCORE_FAIL_OPEN", "IDEMCORE_KEEP_BODY"])
@pytest.mark.parametrize("text", ["", "off", "no", "2", 2, None, 1.0, "tru"])
def test_other_texts_are_no_switches(name: str, text: Any) -> None:
    """Nobody's guess decides whether payments are protected: it fails at start-up."""
    app = Flask("environment")
    app.config.update({"IDEMCORE_STORE": "memory://", name: text})
    with pytest.raises(ConfigurationError, match=f"{name} is True or False"):
        Idempotency(app, scope=SINGLE_TENANT)


@pytest.mark.parametrize("who", [None, "", ()])
def test_nobody_is_refused(who: Any) -> None:
    """KEY-01: a scope that comes out empty never becomes a shared bucket."""
    bench = FlaskBench(scope=lambda: who).start()
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    got = bench.post()
    assert (got.status_code, code_of(got)) == (400, "idempotency_scope_missing")
    assert bench.runs == 0


def test_a_scope_that_raises_is_the_answer() -> None:
    """What the callable raises goes the way of a view's exception; nothing falls back, nothing runs."""
    bench = FlaskBench(scope=lambda: request.headers.get("X-User") or abort(401)).start()
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    assert bench.post().status_code == 401
    assert bench.runs == 0
    assert bench.post(headers={"X-User": "alice"}).get_json() == {"run": 1}


def test_a_route_may_say_itself_who_is_asking() -> None:
    """KEY-01: the senders of webhooks are no tenants; an app's other routes ask for the app's scope."""
    bench = FlaskBench(scope=lambda: request.headers.get("X-User")).start()
    hook = bench.idempotency.required(scope=lambda: request.headers.get("X-Sender"))
    shared = bench.idempotency.optional(scope=SINGLE_TENANT)
    bench.app.post("/hook", endpoint="hook")(hook(counting(bench)))
    bench.app.post("/shared", endpoint="shared")(shared(counting(bench)))
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    user, sender, other = ({name: who} for name, who in (("X-User", "a"), ("X-Sender", "a"), ("X-Sender", "b")))
    assert code_of(bench.post("/hook", headers=user)) == "idempotency_scope_missing"
    assert code_of(bench.post("/", headers=sender)) == "idempotency_scope_missing"
    for path, headers in (("/hook", sender), ("/hook", other), ("/shared", {}), ("/", {"X-User": "c"})):
        assert [replayed(got) for got in bench.twice(path, headers=headers)] == [False, True]
    with pytest.raises(ConfigurationError, match="scope is a callable"):
        bench.idempotency.required(scope="tenant")  # type: ignore[call-overload]


def test_a_scope_of_a_wrong_type_is_a_configuration_error() -> None:
    """A float or an object in place of a tenant is the program's fault, not the client's."""
    bench = FlaskBench(scope=lambda: 1.5).start()
    bench.app.testing = True
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    with pytest.raises(ConfigurationError):
        bench.post()


def test_unknown_paths_and_methods_are_flasks_own() -> None:
    """404 and 405 are answered as ever, app-wide protection or not."""
    bench = FlaskBench(protect="required").start()
    bench.app.post("/")(counting(bench))
    assert bench.post("/nowhere").status_code == 404
    assert bench.post(method="DELETE").status_code == 405
    assert bench.post(method="OPTIONS", key=None).status_code == 200
    assert bench.post(key=None, data="x" * 10).status_code == 400


def test_the_apps_own_limit_counts_too() -> None:
    """A body over MAX_CONTENT_LENGTH is refused before it is read into memory."""
    bench = FlaskBench().start()
    bench.app.config["MAX_CONTENT_LENGTH"] = 10
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    assert code_of(bench.post(data=b"x" * 11)) == "request_too_large"
    assert bench.post(data=b"x" * 10).status_code == 200


def test_a_decorator_above_the_route_is_refused_at_the_first_request() -> None:
    """HTT-06: the route would get the bare function, and every retry would run."""
    bench = FlaskBench().start()
    bench.idempotency.required(bench.app.post("/")(lambda: {"run": bench.ran()}))
    bench.app.testing = True
    with pytest.raises(ConfigurationError, match="goes below @app"):
        bench.post()
    assert bench.runs == 0


def test_a_factory_may_have_its_routes_looked_over_at_its_end() -> None:
    """HTT-06: `check` tells all that is wrong before the first request, and nothing where all is well."""
    bench = FlaskBench().start()
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    bench.idempotency.check(bench.app)
    bench.idempotency.required(bench.app.post("/bare", endpoint="bare")(lambda: "ran"))
    bench.app.put("/put", endpoint="put")(bench.idempotency.required(lambda: "ran"))
    with pytest.raises(ConfigurationError, match=r"'bare' is registered without.*'put' is protected"):
        bench.idempotency.check(bench.app)
    everywhere = FlaskBench(protect="required").start()
    everywhere.app.get("/")(lambda: "read")
    everywhere.app.test_client().get("/")  # puts the app's own protection around the view
    everywhere.idempotency.check(everywhere.app)


def test_a_look_over_finds_a_missing_table(tmp_path: Path) -> None:
    """Not the first payment; and it names the command that the app has itself."""
    bench = FlaskBench(store=f"sqlite:///{tmp_path}/empty.db").start()
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    with pytest.raises(ConfigurationError, match=r"missing: run .*`flask idemcore init-db`"):
        bench.idempotency.check(bench.app)
    bench.app.test_cli_runner().invoke(args=["idemcore", "init-db"])
    bench.idempotency.check(bench.app)
    bench.idem.close()


def test_a_wrong_view_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Health checks and other views are served; the routes are looked over once and the fault logged once."""
    bench = FlaskBench().start()
    bench.idempotency.required(bench.app.post("/wrong", endpoint="wrong")(lambda: {"run": bench.ran("wrong")}))
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    bench.app.get("/health", endpoint="health")(lambda: "well")
    looked: list[str] = []
    iter_rules = bench.app.url_map.iter_rules
    bench.app.url_map.iter_rules = lambda *a: (looked.append("over"), iter_rules(*a))[1]  # type: ignore[method-assign]
    client = bench.app.test_client()
    assert [client.get("/health").status_code for _ in range(2)] == [200, 200]
    assert looked == ["over"]
    told = [record for record in caplog.records if record.name == "idemcore"]
    assert [(record.levelname, "'wrong'" in record.getMessage()) for record in told] == [("ERROR", True)]
    assert [bench.post("/wrong").status_code for _ in range(2)] == [500, 500]
    assert replayed(bench.twice()[1])
    assert (bench.runs, bench.counts["wrong"], looked) == (1, 0, ["over"])
    assert sum(record.name == "idemcore" for record in caplog.records) == 1


def test_options_that_do_not_go_with_the_apps_fail_alone() -> None:
    """A route's lease that is longer than the app's max_hold is found before a request with a key comes."""
    bench = FlaskBench(max_hold=timedelta(seconds=40)).start()
    longer = bench.idempotency.required(lease=timedelta(seconds=50))
    bench.app.post("/wrong", endpoint="wrong")(longer(lambda: {"run": bench.ran("wrong")}))
    bench.app.post("/")(bench.idempotency.required(counting(bench)))
    assert replayed(bench.twice()[1])
    bench.app.testing = True
    with pytest.raises(ConfigurationError, match=r"'wrong' has wrong options: .*lease"):
        bench.post("/wrong", key=None)


def test_what_another_apps_extension_protects_may_be_bare_here() -> None:
    """Each extension object notes its own decorators: one process may serve an app for staff beside another."""
    guarded, bare = FlaskBench().start(), FlaskBench().start()

    def view() -> Any:
        return {"run": bare.ran()}

    guarded.app.add_url_rule("/", view_func=guarded.idempotency.required(view), methods=["POST"])
    bare.app.add_url_rule("/", view_func=view, methods=["POST"])
    assert [got.get_json()["run"] for got in bare.twice()] == [1, 2]
    assert replayed(guarded.twice()[1])


def test_a_protected_view_that_is_only_read_is_told_to_drop_its_decorator() -> None:
    """GET, HEAD and OPTIONS are never guarded, so no option could help."""
    bench = FlaskBench().start()
    bench.app.get("/")(bench.idempotency.required(counting(bench)))
    bench.app.testing = True
    with pytest.raises(ConfigurationError, match=r"never guarded\. Remove its decorator"):
        bench.app.test_client().get("/")


def test_a_function_may_be_registered_both_bare_and_protected() -> None:
    """Its protected version is registered too, so somebody meant it."""
    bench = FlaskBench().start()

    def view() -> Any:
        return {"run": bench.ran()}

    bench.app.add_url_rule("/bare", "bare", view, methods=["POST"])
    bench.app.add_url_rule("/", "protected", bench.idempotency.required(view), methods=["POST"])
    bench.post()
    assert replayed(bench.post())


def test_a_protected_view_under_another_decorator_is_no_mistake() -> None:
    """What wraps it is registered, and wraps it still."""
    bench = FlaskBench().start()
    guarded = bench.idempotency.required(counting(bench))

    @functools.wraps(guarded)
    def outer() -> Any:
        return guarded()

    bench.app.post("/")(outer)
    bench.post()
    assert replayed(bench.post())


def test_a_protected_view_without_a_guarded_method_is_refused() -> None:
    """A PUT that is decorated and not guarded would run on every retry."""
    bench = FlaskBench().start()
    bench.app.put("/")(bench.idempotency.required(counting(bench)))
    bench.app.testing = True
    with pytest.raises(ConfigurationError, match="PUT"):
        bench.app.test_client().put("/")


@pytest.mark.parametrize("app_wide", [{}, {"methods": ["POST", "DELETE"]}])
@pytest.mark.parametrize("mode", ["required", "optional"])
def test_a_method_beside_the_guarded_ones_is_refused(mode: str, app_wide: Any) -> None:
    """A PUT of a decorated view that is no guarded method would run on every retry, and nobody would know."""
    bench = FlaskBench(**app_wide).start()
    protect = getattr(bench.idempotency, mode)
    bench.app.add_url_rule("/", "open", protect(counting(bench)), methods=["POST", "PUT", "GET"])
    with pytest.raises(ConfigurationError, match=r"'open' is protected and answers PUT too.*\['POST', 'PUT'\]"):
        bench.idempotency.check(bench.app)
    bench.app.testing = True
    with pytest.raises(ConfigurationError, match=r"methods=\['POST'\] if that is meant"):
        bench.post(method="PUT")
    assert bench.runs == 0


@pytest.mark.parametrize(("methods", "replayed_"), [(["POST", "PUT"], True), (["POST"], False)])
def test_a_route_that_names_its_methods_means_what_it_leaves_out(methods: list[str], replayed_: bool) -> None:
    """Either way it is said beside the view."""
    bench = FlaskBench().start()
    view = bench.idempotency.required(methods=methods)(counting(bench))
    bench.app.add_url_rule("/", "open", view, methods=["POST", "PUT"])
    bench.idempotency.check(bench.app)
    assert replayed(bench.twice(method="PUT")[1]) is replayed_
    assert replayed(bench.twice(key="another")[1])


def test_a_decorated_method_of_a_class_that_is_not_guarded_is_refused() -> None:
    """A `put` under the decorator alone, and one that a decorator of its class seems to guard."""
    bench = FlaskBench().start()

    class Alone(MethodView):
        def post(self) -> Any:
            return {"run": bench.ran()}

        @bench.idempotency.required
        def put(self) -> Any:
            return {"run": bench.ran()}

    class Whole(MethodView):
        decorators: ClassVar = [bench.idempotency.required]

        def post(self) -> Any:
            return {"run": bench.ran()}

        def put(self) -> Any:
            return {"run": bench.ran()}

    class Said(Whole):
        @bench.idempotency.exempt
        def put(self) -> Any:
            return {"run": bench.ran()}

    bench.app.add_url_rule("/said", view_func=Said.as_view("said"))
    bench.idempotency.check(bench.app)
    bench.app.add_url_rule("/alone", view_func=Alone.as_view("alone"))
    bench.app.add_url_rule("/whole", view_func=Whole.as_view("whole"))
    with pytest.raises(ConfigurationError, match=r"'alone' .* PUT only.*'whole' .* PUT too"):
        bench.idempotency.check(bench.app)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"retenton": 5}, "did you mean 'retention'"),
        ({"keep": (402,)}, "keep is a function"),
        ({"keep": "final_answers"}, "keep is a function"),
        ({"engine": "memory://"}, "idemcore.Engine"),
    ],
)
def test_wrong_options_are_refused_where_they_stand(options: Any, says: str) -> None:
    """Not at the first answer, and with a word on what was meant."""
    with pytest.raises(ConfigurationError, match=says):
        Idempotency(Flask("wrong"), **{"engine": Engine("memory://"), "scope": SINGLE_TENANT, **options})


@pytest.mark.parametrize("every", [3600, 0.5, timedelta(hours=1)])
def test_an_app_may_sweep_in_the_background(every: Any) -> None:
    """SWE-01: by a setting, in each of its processes; without the setting nothing sweeps."""
    for setting, running in ((every, True), (None, False)):
        app = Flask("swept")
        app.config.update({"IDEMCORE_STORE": "memory://", "IDEMCORE_SWEEP_EVERY": setting})
        Idempotency(app, scope=SINGLE_TENANT)
        engine = app.extensions["idemcore"].engine
        assert (engine._sweeper is not None and engine._sweeper.running) is running
        engine.close()


@pytest.mark.parametrize("every", ["3600", True, 0, -1])
def test_an_interval_that_is_none_fails_at_set_up(every: Any) -> None:
    """And not in a thread that nobody watches."""
    app = Flask("swept")
    app.config.update({"IDEMCORE_STORE": "memory://", "IDEMCORE_SWEEP_EVERY": every})
    with pytest.raises(ConfigurationError, match="timedelta"):
        Idempotency(app, scope=SINGLE_TENANT)


async def awaited() -> str:
    return "tenant-7"


def test_an_async_scope_fails_where_it_is_given() -> None:
    """KEY-01: Flask awaits views, and nobody a scope."""
    with pytest.raises(ConfigurationError, match="scope is a plain function"):
        Idempotency(scope=awaited)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="scope is a plain function"):
        Idempotency().required(scope=awaited)  # type: ignore[arg-type]
