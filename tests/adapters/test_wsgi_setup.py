"""Setting the middleware up; who is asked before an answer is given again."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import pytest

from idemcore import SINGLE_TENANT, ConfigurationError, Engine, StoreUnavailable, current_attempt
from idemcore_wsgi import IdempotencyMiddleware
from tests.adapters.http import Http, InProcess
from tests.adapters.shop import Shop
from tests.adapters.stations import plain_app


def served(**options: Any) -> tuple[Http, Shop]:
    shop = Shop()
    options = {"scope": SINGLE_TENANT, **options}
    app = IdempotencyMiddleware(plain_app(shop), Engine("memory://", observers=()), **options)
    return Http(InProcess(app)), shop


def transport_of(http: Http) -> InProcess:
    transport = http._transport
    assert isinstance(transport, InProcess)
    return transport


@pytest.mark.parametrize(
    "wrong",
    [
        {"authorize": True},
        {"scope": None},
        {"scope": "tenant"},
        {"methods": ["HEAD"]},
        {"statuses": {"idempotency_key_reuse": 399}},
    ],
)
def test_a_wrong_option_fails_at_start_up(wrong: dict[str, Any]) -> None:
    """Not at the first request."""
    with pytest.raises(ConfigurationError):
        served(**wrong)
    with pytest.raises(ConfigurationError, match="did you mean 'keep'"):
        served(keeps=True)


def test_nobody_gets_a_replay_after_access_was_revoked() -> None:
    """SEC: `authorize` is asked before a kept answer is given, and only then."""
    asked: list[str] = []
    revoked: list[str] = []

    def authorize(environ: dict[str, Any]) -> bool:
        asked.append(environ["PATH_INFO"])
        return not revoked

    http, _ = served(authorize=authorize)
    first = http.post()
    assert asked == []
    assert http.post().body == first.body
    revoked.append("alice")
    got = http.post()
    assert (got.status, got.code, got.problem["retry"]) == (403, "replay_forbidden", "never")
    assert asked == ["/pay", "/pay"]
    assert http.post(key="another").status == 201, "a first request is the application's to judge"
    assert http.runs == 2


def test_an_authorize_that_raises_gives_nothing_away() -> None:
    """What it raises passes through to the server."""
    http, _ = served(authorize=lambda environ: 1 / 0)
    http.post()
    got = http.post()
    assert (got.status, got.body) == (500, b"a server's own page")


async def awaited(*_: Any) -> Any:
    return True


class AwaitedCall:
    async def __call__(self, *_: Any) -> Any:
        return True


@pytest.mark.parametrize("option", ["scope", "authorize", "key", "keep", "redact", "render"])
@pytest.mark.parametrize(
    "function", [awaited, partial(awaited, 1), AwaitedCall()], ids=["def", "partial", "call"]
)
def test_an_async_function_fails_at_start_up(option: str, function: Any) -> None:
    """SEC: nobody awaits it, and a coroutine counts as yes to Python: another user got the kept answer."""
    with pytest.raises(ConfigurationError, match=f"^{option} is a plain function"):
        served(**{option: function})


@pytest.mark.parametrize(
    "says", [awaited, lambda _: None, lambda _: 1, lambda _: "no"], ids=["coroutine", "None", "1", "no"]
)
@pytest.mark.filterwarnings("error")
def test_an_authorize_that_says_neither_yes_nor_no_gives_nothing_away(says: Any) -> None:
    """SEC: what it means nobody can tell, so it is an error; a coroutine is closed."""
    http, _ = served(authorize=lambda environ: says(environ))
    first = http.post()
    got = http.post()
    assert (got.status, got.body) == (500, b"a server's own page")
    assert first.body != got.body
    assert [type(error) for error in transport_of(http).errors] == [ConfigurationError]
    gc.collect()


@pytest.mark.parametrize("fail_open", [False, True])
def test_an_authorize_whose_own_store_is_down_runs_nothing_again(fail_open: bool) -> None:
    """DEG-01: `fail_open` is for this engine's store; the operation is known to be done here."""

    def authorize(environ: dict[str, Any]) -> bool:
        error = StoreUnavailable("another one", retry_after=1)
        error.nothing_known = True
        raise error

    http, _ = served(authorize=authorize, fail_open=fail_open)
    http.post()
    assert http.post().status == 500
    assert http.runs == 1


@pytest.mark.parametrize("option", ["scope", "key"])
@pytest.mark.filterwarnings("error")
def test_a_function_that_returns_a_coroutine_is_the_programs_error(option: str) -> None:
    """KEY-01: not a client's that is told 400; nothing runs."""
    http, _ = served(**{option: lambda _: awaited()})
    assert http.post().status == 500
    assert [type(error) for error in transport_of(http).errors] == [ConfigurationError]
    assert http.runs == 0
    gc.collect()


def test_a_key_function_that_returns_a_number_is_the_programs_error() -> None:
    """KEY-02: the client sent nothing wrong."""
    http, _ = served(key=lambda asked: 5)
    assert http.post().status == 500
    assert http.runs == 0


def test_a_scope_that_raises_never_falls_back() -> None:
    """KEY-01: nothing runs, nothing is shared."""
    http, _ = served(scope=lambda environ: environ["verified.tenant"])
    assert http.post().status == 500
    assert http.runs == 0


def test_a_scope_of_several_parts() -> None:
    """A tenant and a user make one scope; no two of them meet."""
    http, _ = served(scope=lambda environ: (environ["HTTP_X_TENANT"], environ["HTTP_X_USER"]))
    for tenant in ("ab", "a"):
        assert not http.post(user="c", headers=[("X-Tenant", tenant)]).replayed
    assert http.post(user="c", headers=[("X-Tenant", "a")]).replayed


def test_an_application_sees_only_whole_bodies() -> None:
    """HTT-02: after a chunked body was read, the application finds it with its length."""
    lengths: list[str | None] = []

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        lengths.append(environ.get("CONTENT_LENGTH"))
        assert "HTTP_TRANSFER_ENCODING" not in environ
        assert environ["wsgi.input"].read() == b"chunked"
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"ok"]

    guarded = IdempotencyMiddleware(app, Engine("memory://", observers=()), scope=SINGLE_TENANT)
    assert Http(InProcess(guarded)).post(body=[b"chun", b"ked"]).body == b"ok"
    assert lengths == ["7"]


@pytest.mark.parametrize("says", [False, True])
def test_around_a_framework_that_catches_exceptions_the_view_says_that_its_outcome_is_open(says: bool) -> None:
    """OUT-03: `unknown` sees what leaves the application; a framework's own 500 lets the request run again."""
    runs: list[int] = []

    def view() -> None:
        runs.append(1)
        try:
            raise TimeoutError
        except TimeoutError:
            if says:
                current_attempt().unknown("provider timed out")
            raise

    def framework(environ: dict[str, Any], start_response: Any) -> Any:
        try:
            view()
        except Exception:
            start_response("500 Internal Server Error", [("Content-Type", "text/plain")])
        return [b"sorry"]

    engine = Engine("memory://", observers=())
    http = Http(
        InProcess(IdempotencyMiddleware(framework, engine, scope=SINGLE_TENANT, unknown=(TimeoutError,)))
    )
    assert http.post().status == 500
    assert http.post().code == ("outcome_unknown" if says else "")
    assert len(runs) == (1 if says else 2)


def test_no_path_is_an_error_of_the_programs() -> None:
    """A client that sends NUL or a lone surrogate in its path gets its run and its replay; no two meet."""
    http, _ = served(operation="route")
    paths = [f"/pay/{end}" for end in ("\0", "%00", "%2500", "%", "%25", "\udcff", "%ED%B3%BF", "a\0b\0")]
    for path in paths:
        assert not http.post(path).replayed, ascii(path)
    for path in paths:
        got = http.post(path)
        assert (got.status, got.replayed) == (201, True), ascii(path)
    assert http.runs == len(paths)
