"""Four places in a request's life, and what happens in each.

1. The first ``before_request`` reads the body of a protected request, so that no later hook can eat it.
2. At view dispatch the guard decides, see `dispatch`.
3. The last ``after_request`` sees what the client will get, whoever made it, and records it.
4. ``teardown_request`` settles what is left: exceptions that propagate skip ``after_request``.
"""

from __future__ import annotations

import contextlib

from flask import Flask, Response

from idemcore.http import NOTHING, method_of
from idemcore_flask.body import read
from idemcore_flask.configured import is_enabled
from idemcore_flask.protection import Settings
from idemcore_flask.recorded_response import record, replayed
from idemcore_flask.routes import Routes
from idemcore_flask.state import STATE, State, state_of, this_request


def install(app: Flask, settings: Settings) -> None:
    """Hangs the hooks up around all others that the app has and will have."""
    app.before_request_funcs.setdefault(None, []).insert(0, _BodyReader(app, settings).read_body)
    app.after_request_funcs.setdefault(None, []).insert(0, _record_answer)
    app.teardown_request_funcs.setdefault(None, []).insert(0, _settle_rest)


class _BodyReader:
    def __init__(self, app: Flask, settings: Settings) -> None:
        self._app = app
        self._routes = Routes(app, settings)

    def read_body(self) -> None:
        asked = this_request()
        rule = asked.url_rule
        route = self._routes.of(rule.endpoint) if rule is not None else None
        if route is None:
            return
        environ = asked.environ
        guard = route.guards.get(method_of(environ))
        if guard is None or not (guard.variable in environ or guard.key_in_body) or not is_enabled(self._app):
            return
        asked.__dict__[STATE] = State(read(asked, guard.policy.max_request_bytes))


def _record_answer(response: Response) -> Response:
    state = state_of(this_request())
    if state is None:
        return response
    if state.replay is not None:
        (answer, marker), state.replay = state.replay, None
        return replayed(response, answer, marker)
    run = state.run
    if run is None:
        return response
    if run.marks:
        response.headers.extend(run.marks)
    if run.settled:
        return response
    try:
        return record(response, run)
    except BaseException as error:
        run.broke(error, "not_encodable")
        raise


def _settle_rest(error: BaseException | None) -> None:
    state = state_of(this_request())
    run = state.run if state is not None else None
    if run is None or run.settled or run.streaming:
        return
    with contextlib.suppress(Exception):  # nothing here may mask the request's own error
        # An exception is answered by the app, mostly with a 500, and counts as that. An interrupt is not.
        if run.returned is not NOTHING and error is not None and not isinstance(error, Exception):
            run.broke(error, "interrupted")
        run.fail(error if error is not None else RuntimeError("the request ended without an answer"))
