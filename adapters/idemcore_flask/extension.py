"""The extension: who is protected, by which options; state lives in the app, never in the extension.

What the extension was made with is kept for the apps that it will set up, and nothing of an app is.

Authentication belongs above the decorator and the key layer below it, so that a kept answer is given only
to callers who would be let in now::

    @app.post("/payments")
    @login_required
    @idempotency.required
    def create_payment(): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, cast, overload

from flask import Flask

from idemcore import ConfigurationError, Engine
from idemcore.http import HTTPOptions, HTTPPolicy
from idemcore.identity import SingleTenant
from idemcore_flask import hooks
from idemcore_flask.commands import commands
from idemcore_flask.configured import (
    PROTECT,
    SWEEP_EVERY,
    check_names,
    check_table,
    engine_of,
    is_enabled,
    naming,
    option_of,
    setting_of,
    sweep_interval,
)
from idemcore_flask.decorated import DecoratedViews
from idemcore_flask.dispatch import protected
from idemcore_flask.protection import MARK, Protection, ScopeOf, Settings, scope_caller, settings_of
from idemcore_flask.setup_check import faults_of

P = ParamSpec("P")
R = TypeVar("R")

_OPTION_NAMES = tuple(HTTPOptions.__annotations__)


class Idempotency:
    """Makes Flask views safe to retry.

    Args:
        app: to set up at once; or call `init_app` later, where what is given there counts first.
        engine: see `init_app`, like the rest.
        scope: who is asking.
        protect: views without a decorator.
        **options: for all views.

    Raises:
        ConfigurationError: something is wrong; with an app, or missing.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        engine: Engine | None = None,
        scope: ScopeOf | SingleTenant | None = None,
        protect: Literal["optional", "required"] | None = None,
        **options: Unpack[HTTPOptions],
    ) -> None:
        if engine is not None:
            _check_engine(engine)
        if scope is not None:
            scope_caller(scope)
        _check_protect(protect)
        HTTPPolicy.check(options)
        self._decorated = DecoratedViews()
        self._engine, self._scope, self._options = engine, scope, options
        self._protect: Literal["optional", "required"] | None = protect
        if app is not None:
            self.init_app(app)

    def init_app(
        self,
        app: Flask,
        *,
        engine: Engine | None = None,
        scope: ScopeOf | SingleTenant | None = None,
        protect: Literal["optional", "required"] | None = None,
        **options: Unpack[HTTPOptions],
    ) -> None:
        """Sets an app up; several apps may share one extension object.

        What is not given here is as the extension was made with.

        Args:
            app: the app.
            engine: where claims and answers are kept; made from the setting ``IDEMCORE_STORE``, a URL,
                where it is not given, with ``IDEMCORE_TABLE`` and ``IDEMCORE_SCHEMA``.
            scope: callable that returns who is asking, called in the request, after all
                ``before_request`` functions; or SINGLE_TENANT, where all callers may share keys. None or
                an empty scope is refused (400).
            protect: protects every view that is not exempt: with a key where there is one
                (``"optional"``), or refusing guarded requests without (``"required"``).
            **options: for all views, see `idemcore.http.HTTPPolicy`; settings ``IDEMCORE_<OPTION>`` count
                where an option is not given, and then the engine's policy.

        The setting ``IDEMCORE_SWEEP_EVERY``, in seconds, has each process sweep in the background, see
        `Engine.sweep_in_background`.

        Raises:
            ConfigurationError: something is missing or wrong.
        """
        who = scope_caller(scope if scope is not None else self._scope)
        if "idemcore" in app.extensions:
            raise ConfigurationError("This app is set up already; init_app is called once for each app.")
        engine = engine if engine is not None else self._engine
        if engine is None:
            engine = engine_of(app)
        else:
            _check_engine(engine)
            check_table(app)
        _check_protect(protect)
        protect = protect if protect is not None else self._protect
        if protect is None:
            protect = app.config.get(PROTECT)
            with naming(PROTECT):
                _check_protect(protect)
        options = {**self._options, **options}
        check_names(app, _OPTION_NAMES)
        set_ = [name for name in _OPTION_NAMES if name not in options and setting_of(name) in app.config]
        for name in set_:
            cast("dict[str, Any]", options)[name] = option_of(name, app.config[setting_of(name)])
        is_enabled(app)  # a switch that is neither on nor off fails now
        settings = Settings(
            engine=engine,
            scope=who,
            options=options,
            everywhere=Protection(protect, {}) if protect is not None else None,
            decorated=self._decorated,
        )
        with naming(*map(setting_of, set_)):
            settings.guard(Protection("optional", {}))  # options that do not go together fail now
        every = sweep_interval(app)
        if every is not None:
            with naming(SWEEP_EVERY):
                engine.sweep_in_background(every=every)
        app.extensions["idemcore"] = settings
        hooks.install(app, settings)
        app.cli.add_command(commands)

    def check(self, app: Flask) -> None:
        """Fails now where the protection of a route cannot work; call it where an app has all of its routes.

        Without it the same is told at the first request, and each request to such a route fails: nothing in
        Flask says when an application factory is done. The engine's own `check` is a part of it.

        Raises:
            ConfigurationError: a decorator stands above its route, a protected view answers a method that is
                not guarded, a route's options do not go with the app's, or the store is not set up: its table
                is missing.
            StoreUnavailable: the store does not answer.
        """
        settings = settings_of(app)
        faults = faults_of(app, settings)
        if faults:
            raise ConfigurationError(" ".join(faults.values()))
        settings.engine.check()

    @overload
    def required(self, view: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def required(
        self, /, *, scope: ScopeOf | SingleTenant | None = None, **options: Unpack[HTTPOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def required(
        self,
        view: Callable[..., Any] | None = None,
        /,
        *,
        scope: ScopeOf | SingleTenant | None = None,
        **options: Unpack[HTTPOptions],
    ) -> Any:
        """Protects a view; a guarded request without a key is refused (400).

        Bare, or called with what differs on this route: the options of `idemcore.http.HTTPPolicy`, and the
        scope, such as the sender of a webhook where other callers are tenants.
        """
        return self._decorate(view, "required", scope, options)

    @overload
    def optional(self, view: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def optional(
        self, /, *, scope: ScopeOf | SingleTenant | None = None, **options: Unpack[HTTPOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def optional(
        self,
        view: Callable[..., Any] | None = None,
        /,
        *,
        scope: ScopeOf | SingleTenant | None = None,
        **options: Unpack[HTTPOptions],
    ) -> Any:
        """Protects a view where a key is sent; a request without one goes straight through."""
        return self._decorate(view, "optional", scope, options)

    def exempt(self, view: Callable[P, R]) -> Callable[P, R]:
        """Leaves a view out of ``protect``."""
        setattr(view, MARK, Protection("exempt", {}))
        return view

    def _decorate(
        self,
        view: Callable[..., Any] | None,
        mode: Literal["optional", "required"],
        scope: ScopeOf | SingleTenant | None,
        options: HTTPOptions,
    ) -> Any:
        HTTPPolicy.check(options)  # a wrong option fails where it stands
        protection = Protection(mode, options, scope_caller(scope) if scope is not None else None)

        def decorate(view: Callable[P, R]) -> Callable[P, R]:
            guarded = protected(protection, view)
            self._decorated.note(view, guarded)
            return guarded

        return decorate if view is None else decorate(view)


def _check_engine(engine: object) -> None:
    if not isinstance(engine, Engine):
        raise ConfigurationError(f"engine is an idemcore.Engine, not {type(engine).__name__}.")


def _check_protect(protect: object) -> None:
    if protect not in (None, "optional", "required"):
        raise ConfigurationError(f"protect is 'optional', 'required' or None, not {protect!r}.")
