"""The middleware: reads the request, asks the guard, runs the application, records its answer.

It stands outside of the application, so it runs before the application's own authentication: the scope has
to come from something verified (a client certificate, a token checked by an outer middleware), and
`authorize` is asked before a kept answer is given to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from idemcore import ConfigurationError, Engine
from idemcore.http import (
    Guard,
    HTTPAnswer,
    HTTPOptions,
    method_of,
    read_request,
    refuse_unfit,
    warn_of_split_memory,
)
from idemcore.identity import Scope, SingleTenant
from idemcore_wsgi.exchange import Exchange

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

ScopeOf: TypeAlias = Callable[[dict[str, Any]], Scope | None]


class IdempotencyMiddleware:
    """Makes the guarded requests of a WSGI application safe to retry.

    Args:
        app: the application.
        engine: where claims and answers are kept; its policy counts where an option is not given.
        scope: callable that takes the environment and returns who is asking; or SINGLE_TENANT, where all
            callers may share keys. None or an empty scope is refused (400).
        required: whether a guarded request without a key is refused (400) or goes straight through.
        authorize: callable that takes the environment and returns whether this caller may have a kept
            answer now: True, or False; asked before each replay (403 if not).
        **options: see `idemcore.http.HTTPPolicy`.

    Raises:
        ConfigurationError: an option is wrong.
    """

    def __init__(
        self,
        app: WSGIApplication,
        engine: Engine,
        *,
        scope: ScopeOf | SingleTenant,
        required: bool = False,
        authorize: Callable[[dict[str, Any]], bool] | None = None,
        **options: Unpack[HTTPOptions],
    ) -> None:
        if not isinstance(scope, SingleTenant) and not callable(scope):
            raise ConfigurationError(
                "scope is a callable that takes the environment and returns who is asking, or SINGLE_TENANT."
            )
        if authorize is not None and not callable(authorize):
            raise ConfigurationError(
                "authorize is a callable that takes the environment and returns True or False."
            )
        refuse_unfit("scope", scope)
        refuse_unfit("authorize", authorize)
        if not isinstance(engine, Engine):
            raise ConfigurationError(f"engine is an idemcore.Engine, not {type(engine).__name__}.")
        self._app = app
        self._guard = Guard(engine, options, required=required)
        self._scope: ScopeOf = scope if not isinstance(scope, SingleTenant) else lambda _: scope
        self._authorize = authorize

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serves one request; see PEP 3333."""
        guard = self._guard
        header = environ.get(guard.variable)
        if (header is None and guard.headless_pass) or method_of(environ) not in guard.methods:
            return self._app(environ, start_response)
        begun = guard.admit(header, environ, read_request, self._scope, self._authorize)
        if begun is None:
            return self._app(environ, start_response)
        if isinstance(begun, HTTPAnswer):
            start_response(begun.status_text, begun.headers)
            return [begun.body]
        if environ.get("wsgi.multiprocess"):
            warn_of_split_memory(guard.engine)
        return Exchange(begun, start_response).serve(self._app, environ)
