"""How a view is protected: the mark that a decorator leaves, and an app's settings that complete it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from flask import Flask
from flask import Request as FlaskRequest

from idemcore import ConfigurationError, Engine
from idemcore.http import Guard, HTTPOptions, refuse_unfit
from idemcore.identity import Scope, SingleTenant
from idemcore_flask.decorated import DecoratedViews

MARK: Final = "__idemcore_protection__"

ScopeOf: TypeAlias = Callable[[], Scope | None]
"""Says who is asking, in the request."""
AskedScope: TypeAlias = Callable[[FlaskRequest], Scope | None]
"""The same, as the guard asks for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Protection:
    """One decorator's word: its mode, and the options in which its route differs.

    Attributes:
        mode: what a request without a key gets.
        options: the app's stand underneath.
        scope: says who is asking; None where the app's does.
    """

    mode: Literal["optional", "required", "exempt"]
    options: HTTPOptions
    scope: AskedScope | None = None


@dataclass(slots=True)
class Settings:
    """What one app was set up with; kept in ``app.extensions["idemcore"]``.

    Attributes:
        engine: where claims and answers are kept.
        scope: says who is asking.
        options: of the app; a route's stand on top.
        everywhere: protects the views without a decorator.
        decorated: the views that the app's extension object protects by decorators.
    """

    engine: Engine
    scope: AskedScope
    options: HTTPOptions
    everywhere: Protection | None
    decorated: DecoratedViews
    _guards: dict[Protection, Guard] = field(default_factory=dict)

    def guard(self, protection: Protection) -> Guard:
        """The guard for a route: its options over the app's over the engine's policy; made once."""
        guard = self._guards.get(protection)
        if guard is None:
            options: HTTPOptions = {**self.options, **protection.options}
            guard = Guard(self.engine, options, required=protection.mode == "required")
            self._guards[protection] = guard
        return guard


def settings_of(app: Flask) -> Settings:
    """The app's settings.

    Raises:
        ConfigurationError: the app was not set up.
    """
    settings = app.extensions.get("idemcore")
    if not isinstance(settings, Settings):
        raise ConfigurationError("Call idempotency.init_app(app, engine=..., scope=...) for this app first.")
    return settings


def scope_caller(scope: ScopeOf | SingleTenant | None) -> AskedScope:
    """The scope as the guard asks for it.

    Raises:
        ConfigurationError: it is neither one nor SINGLE_TENANT.
    """
    if isinstance(scope, SingleTenant):
        return lambda _: scope
    if callable(scope):
        refuse_unfit("scope", scope)
        return lambda _: scope()
    raise ConfigurationError(
        "scope is a callable that returns who is asking, such as lambda: g.tenant_id, or SINGLE_TENANT."
    )


def own_mark(view: object) -> Protection | None:
    """The mark on a view function itself."""
    mark = getattr(view, MARK, None)
    return mark if isinstance(mark, Protection) else None


def method_mark(view: object, method: str) -> Protection | None:
    """The mark on the method of a class-based view; it counts before one on the whole view."""
    return own_mark(getattr(getattr(view, "view_class", None), method.lower(), None))
