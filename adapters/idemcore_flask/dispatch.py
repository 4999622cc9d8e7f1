"""A protected view: asks the guard at dispatch, after every ``before_request``, and answers in its stead.

A kept answer or a refusal is returned as a response, out of the reach of errorhandlers. The run of the view
is not settled here: what its client will get is known only after every ``after_request``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Final

from flask import Flask, Response
from flask import Request as FlaskRequest

from idemcore import IdempotencyError
from idemcore.http import Guard, HTTPAnswer, Request, method_of, warn_of_split_memory
from idemcore_flask.body import read
from idemcore_flask.configured import is_enabled
from idemcore_flask.protection import MARK, Protection, Settings, method_mark, settings_of
from idemcore_flask.state import STATE, State, state_of, this_app, this_request

_FIRST: Final = "idemcore_first"


def protected(protection: Protection, view: Callable[..., Any]) -> Callable[..., Any]:
    """The view, with a guard in front that has its app's settings."""
    call = _synchronous(view) if iscoroutinefunction(view) else view

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        app, asked = this_app(), this_request()
        settings = settings_of(app)
        guard = settings.guard(protection)
        environ = asked.environ
        first = asked.__dict__.setdefault(_FIRST, protection)
        if (
            (guard.headless_pass and guard.variable not in environ)
            or method_of(environ) not in guard.methods
            or not is_enabled(app)
            or (first is protection and _yields_to_method(protection, app, asked))
        ):
            return call(*args, **kwargs)
        state = state_of(asked)
        if state is None:
            state = asked.__dict__[STATE] = State()
        elif state.run is not None:  # a decorated view inside of a protected one: the outer claim covers it
            return call(*args, **kwargs)
        answer = _begun(protection, settings, guard, state, asked)
        if answer is not None:
            return answer
        run = state.run
        if run is None:
            return call(*args, **kwargs)
        try:
            return run.ask(call, *args, **kwargs)
        except BaseException as error:
            run.doubt(error)
            raise

    setattr(guarded, MARK, protection)
    return guarded


def _synchronous(view: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: this_app().ensure_sync(view)(*args, **kwargs)


def _begun(
    protection: Protection, settings: Settings, guard: Guard, state: State, asked: FlaskRequest
) -> Response | None:
    """An answer in the view's stead; None where it is to run, by itself or as the state's run."""
    begun = guard.admit(
        asked.environ.get(guard.variable),
        asked,
        _request_of,
        protection.scope if protection.scope is not None else settings.scope,
    )
    if isinstance(begun, HTTPAnswer):
        if begun.is_replay:
            state.replay = begun, guard.policy.replayed_header
        return Response(begun.body, begun.status_text, begun.headers)
    if begun is not None:
        if asked.environ.get("wsgi.multiprocess"):
            warn_of_split_memory(guard.engine)
        state.run = begun
    return None


def _request_of(asked: FlaskRequest, limit: int) -> Request:
    """As the first hook read it; or now, for a decorated function that no rule maps to."""
    state = state_of(asked)
    found = state.request if state is not None and state.request is not None else read(asked, limit)
    if isinstance(found, IdempotencyError):
        raise found
    return found


def _yields_to_method(first: Protection, app: Flask, asked: FlaskRequest) -> bool:
    """A word on a whole class-based view, or on the app, gives way to one on the method itself.

    That is asked of the outermost word only: a function that the view calls speaks for itself.
    """
    own = method_mark(app.view_functions.get(asked.endpoint or ""), asked.method)
    return own is not None and own is not first
