"""One call is one call, however it is spelled: positional, by keyword or left to a default.

Python itself binds the arguments: for each function one of the same parameters is made, which returns what
it is given by name. So a call that does not fit is refused as Python would, in its words, and a call costs an
eighth of what `inspect.Signature.bind` takes for the same.

Of a function that another decorator wraps with ``(*args, **kwargs)`` the names are those of the one behind it.
That decorator may add arguments, so that each of the caller's stands for another name: what does not fit, or
would be left out of the comparison by its place alone, is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any, Final

from idemcore import ConfigurationError

NAMED: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
"""Kinds of parameters that stand for one argument each."""

_BY_PLACE: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

_NONE: Final = Parameter.empty


class Binding:
    """Arguments by name, for one function.

    Attributes:
        signature: of the function.
        names: of its parameters, in order.
        extra: the name of the parameter that takes any other keyword, if there is one.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        own, behind = _own_signature(function), inspect.signature(function)
        self._guessed: Final = own.parameters.keys() != behind.parameters.keys() and _passes_on(own, behind)
        self.signature: Final = behind if self._guessed else own
        parameters = self.signature.parameters
        self.names: Final = tuple(parameters)
        extra = [name for name, given in parameters.items() if given.kind is Parameter.VAR_KEYWORD]
        self.extra: Final = extra[0] if extra else None
        self._reader: Final = _reader(self.signature, getattr(function, "__qualname__", "function"))

    def reader(self, left_out: Collection[str]) -> Callable[..., dict[str, Any]]:
        """What gives the arguments by the names of the parameters, called as the function.

        Defaults are included, in the order of the signature. A call that does not fit is a TypeError.

        Args:
            left_out: the parameters that are no part of what is compared.
        """
        if not self._guessed:
            return self._reader
        read: Final = self._reader
        places: Final = [name for name, each in self.signature.parameters.items() if each.kind in _BY_PLACE]
        receiver: Final = places[:1] if places[:1] in (["self"], ["cls"]) else []
        left_out = {*left_out, *(places if "*" in left_out else ())}.difference(receiver)
        doubtful: Final = [name in left_out for name in places]

        def arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
            try:
                given = read(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{error}. {_BELOW}") from None
            if any(doubtful[: len(args)]):
                name = places[doubtful.index(True)]
                raise ConfigurationError(
                    f"{name!r} is left out of what is compared, and is given by its place to a decorator that "
                    f"may add arguments before it: give it by keyword. {_BELOW}"
                )
            return given

        return arguments

    def spelled(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as a call again: by position where that is possible, else by keyword."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                positional += arguments[name]
            elif parameter.kind is Parameter.VAR_KEYWORD:
                keywords |= arguments[name]
            elif parameter.kind is Parameter.KEYWORD_ONLY:
                keywords[name] = arguments[name]
            else:
                positional.append(arguments[name])
        return positional, keywords


_BELOW: Final = "Where a decorator adds arguments, write @idempotent below it."


def _own_signature(function: Callable[..., object]) -> Signature:
    try:
        return inspect.signature(function, follow_wrapped=False)
    except ValueError:  # made in C, such as functools.cache
        return Signature(
            [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)]
        )


def _passes_on(own: Signature, behind: Signature) -> bool:
    """Whether a wrapper takes what the function behind it does: its first names, if any, and any others."""
    named = [name for name, parameter in own.parameters.items() if parameter.kind in NAMED]
    return len(named) < len(own.parameters) and named == list(behind.parameters)[: len(named)]


def _reader(signature: Signature, called: str) -> Callable[..., dict[str, Any]]:
    """A function of this signature that returns its arguments by name."""
    given = [parameter for parameter in signature.parameters.values() if parameter.default is not _NONE]
    members = ", ".join(f"{name!r}: {_spelled(name)}" for name in signature.parameters)
    plain = Signature(
        [
            # Their defaults follow below, as they are; what is written here keeps their places.
            Parameter(_spelled(name), each.kind, default=_NONE if each.default is _NONE else None)
            for name, each in signature.parameters.items()
        ]
    )
    made: dict[str, Any] = {}
    # Made of names alone, which `inspect` has found to be names.
    source = f"def reader{plain}:\n    return {{{members}}}"
    exec(compile(source, f"<arguments of {called}>", "exec"), made)  # noqa: S102 - as said above
    reader: Any = made["reader"]
    reader.__kwdefaults__ = {item.name: item.default for item in given if item.kind is Parameter.KEYWORD_ONLY}
    reader.__defaults__ = tuple(item.default for item in given if item.kind is not Parameter.KEYWORD_ONLY)
    reader.__name__ = reader.__qualname__ = called
    typed: Callable[..., dict[str, Any]] = reader
    return typed


def _spelled(name: str) -> str:
    """A word of Python's own can be a name only where nobody spells it, in a function made in C."""
    return f"{name}_" if iskeyword(name) else name
