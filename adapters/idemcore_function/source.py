"""Where a key or a scope comes from, made ready at decoration: a template, a callable, or a value as it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Final, TypeAlias

from idemcore import ConfigurationError, KeyMissing, ScopeMissing
from idemcore.all_arguments import ALL_ARGUMENTS, AllArguments
from idemcore.identity import Scope, identify

from .binding import NAMED, Binding
from .template import Template, text_of

KeySource: TypeAlias = str | Callable[..., object] | AllArguments
ScopeSource: TypeAlias = Scope | Callable[..., Scope | None]


class Callback:
    """A caller's own callable, asked once for each call of the function.

    It gets those of the function's arguments that it names. One that names them otherwise, or takes
    ``*args``, gets all of them as the function would, by position where possible.

    Args:
        ask: the callable.
        binding: of the function.
        what: ``key`` or ``scope``, for messages.

    Attributes:
        names: the parameters that it is given.

    Raises:
        ConfigurationError: it cannot be called with the function's arguments.
    """

    def __init__(self, ask: Callable[..., Any], binding: Binding, what: str) -> None:
        self._ask = ask
        self._binding = binding
        try:
            parameters = list(inspect.signature(ask).parameters.values())
        except (TypeError, ValueError):  # built in, and says nothing about itself
            parameters = [Parameter("args", Parameter.VAR_POSITIONAL)]
        named = [parameter for parameter in parameters if parameter.kind in NAMED]
        known = all(parameter.name in binding.names for parameter in named)
        kinds = {parameter.kind for parameter in parameters}
        self._takes_rest = Parameter.VAR_KEYWORD in kinds
        self._by_name = known and Parameter.VAR_POSITIONAL not in kinds
        self._positional = [
            parameter.name for parameter in named if parameter.kind is Parameter.POSITIONAL_ONLY
        ]
        self._keywords = [parameter.name for parameter in named if parameter.name not in self._positional]
        self.names: Final = frozenset(parameter.name for parameter in named if parameter.name in binding.names)
        if not self._by_name:
            self._check(named, what)

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """What it says for these arguments; what it raises passes through."""
        if not self._by_name:
            positional, keywords = self._binding.spelled(arguments)
            return self._ask(*positional, **keywords)
        keywords = {name: arguments[name] for name in self._keywords}
        if self._takes_rest:
            keywords = {name: value for name, value in arguments.items() if name not in self._positional}
            extra = self._binding.extra
            if extra is not None and extra not in self._keywords:  # else it is asked for by its own name
                # A parameter's argument comes before one of its name that only ``**`` takes.
                keywords = {**keywords.pop(extra), **keywords}
        return self._ask(*[arguments[name] for name in self._positional], **keywords)

    def _check(self, named: list[Parameter], what: str) -> None:
        """By position: a name of the function's must stand where the function has it."""
        places = list(self._binding.names)
        for place, parameter in enumerate(named):
            moved = parameter.name in places and places.index(parameter.name) != place
            if parameter.kind is not Parameter.KEYWORD_ONLY and moved:
                raise ConfigurationError(
                    f"{what}= is a callable that has {parameter.name!r} in another place than the function; "
                    f"give it the function's own names: ({', '.join(places)})."
                )
        if self._binding.signature.parameters and not self._fits():
            raise ConfigurationError(
                f"{what}= is a callable over the function's arguments, ({', '.join(places)}) or some of them "
                f"by name, and takes ({', '.join(parameter.name for parameter in named)})."
            )

    def _fits(self) -> bool:
        parameters = self._binding.signature.parameters.values()
        if any(parameter.kind not in NAMED for parameter in parameters):
            return True  # how many arguments there are differs from call to call
        positional, keywords = self._binding.spelled(dict.fromkeys(self._binding.names))
        try:
            inspect.signature(self._ask).bind(*positional, **keywords)
        except TypeError:
            return False
        except ValueError:  # built in, as above
            return True
        return True


def key_source(key: KeySource, binding: Binding, declared: Mapping[str, Any]) -> Template | KeyCallback | None:
    """Where keys come from; None for ALL_ARGUMENTS, whose key is the fingerprint."""
    if key is ALL_ARGUMENTS:
        return None
    if isinstance(key, str):
        return Template(key, binding.names, declared, KeyMissing)
    if callable(key):
        return KeyCallback(key, binding, "key")
    raise ConfigurationError("key= is a template such as '{invoice.id}', a callable, or ALL_ARGUMENTS.")


class KeyCallback(Callback):
    """A callable that makes the key."""

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        """The key as text.

        Raises:
            KeyMissing: it is None or empty.
            ConfigurationError: it is of a type that makes no key.
        """
        value = super().__call__(arguments)
        try:
            text = text_of(value)
        except TypeError as error:
            raise ConfigurationError(f"key= returned no key: {error}") from None
        if not text:
            raise KeyMissing("key= returned None or an empty text; nothing was run.")
        return text


def scope_source(scope: ScopeSource, binding: Binding, declared: Mapping[str, Any]) -> Any:
    """Where scopes come from, called with the arguments; or a scope as it is."""
    if isinstance(scope, str) and ("{" in scope or "}" in scope):
        return Template(scope, binding.names, declared, ScopeMissing)
    if callable(scope):
        return Callback(scope, binding, "scope")
    identify(scope, "operation", "key")  # refused now rather than at each call
    return scope
