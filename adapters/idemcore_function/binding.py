"""One call is one call, however it is spelled: positional, by keyword or left to a default.

Python itself binds the arguments: for each function one of the same parameters is made, which returns what
it is given by name. So a call that does not fit is refused as Python would, in its words, and a call costs an
eighth of what `inspect.Signature.bind` takes for the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any, Final

NAMED: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
"""Kinds of parameters that stand for one argument each."""

_NONE: Final = Parameter.empty


class Binding:
    """Arguments by name, for one function.

    Attributes:
        signature: of the function.
        names: of its parameters, in order.
        extra: the name of the parameter that takes any other keyword, if there is one.
        arguments: called as the function, gives the arguments by the names of the parameters, defaults
            included, in the order of the signature. A call that does not fit is a TypeError.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self.signature: Final = inspect.signature(function)
        parameters = self.signature.parameters
        self.names: Final = tuple(parameters)
        extra = [name for name, given in parameters.items() if given.kind is Parameter.VAR_KEYWORD]
        self.extra: Final = extra[0] if extra else None
        self.arguments: Final = _reader(self.signature, getattr(function, "__qualname__", "function"))

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
