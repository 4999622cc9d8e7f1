"""An exception as bytes and back: its class is looked up among those allowed, its state is plain values.

No pickle, and no constructor of the caller's is called on replay: one that takes other arguments than it
passes on can therefore not fail. Whether the exception comes back equal is tried when it is recorded; one
that does not is raised again as `RecordedFailure`. Cause, context and traceback are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

from idemcore.errors import RecordedFailure, RecordUnreadable
from idemcore.exact import tagged, untagged
from idemcore.module_name import lasting_name
from idemcore.same import same

__all__ = ["RecordedFailure", "decode_exception", "encode_exception", "is_whole"]

_NO_STATE: Final = ("__dict__", "__weakref__")


def encode_exception(error: BaseException) -> bytes:
    """Writes class name, message, args and attributes; the last two only where they come back as they are.

    It never raises: the exception is an outcome, and it has to be recorded.
    """
    recorded: dict[str, object] = {"type": _name(type(error)), "message": _text(error)}
    bare = json.dumps(recorded, separators=(",", ":")).encode()
    try:
        recorded["args"] = tagged(list(error.args))
        recorded["state"] = tagged(_state(error))
        body = json.dumps(recorded, separators=(",", ":")).encode()
        return body if _equal(error, decode_exception(body, (type(error),))) else bare
    except Exception:
        return bare


def is_whole(body: bytes) -> bool:
    """Whether `encode_exception` wrote all of it; else a replay raises `RecordedFailure`."""
    return "args" in json.loads(body)


def decode_exception(body: bytes, allowed: Iterable[type[BaseException]]) -> BaseException:
    """Rebuilds the exception, if its class is one of `allowed` or a subclass of one.

    Raises:
        RecordUnreadable: the bytes are not what `encode_exception` writes.
    """
    try:
        recorded = json.loads(body)
        name, message = str(recorded["type"]), str(recorded["message"])
        args, state = recorded.get("args"), recorded.get("state")
        if isinstance(args, list) and isinstance(state, dict):
            values, attributes = untagged(args), untagged(state)
            for cls in _with_subclasses(allowed):
                if _name(cls) == name:
                    return _rebuilt(cls, values, attributes)
    except Exception as error:
        raise RecordUnreadable("The kept exception cannot be read; look at the record.") from error
    return RecordedFailure(
        f"{name} was raised when this operation ran; it is kept and cannot be rebuilt here: {message}",
        type_name=name,
        message=message,
    )


def _rebuilt(cls: type[BaseException], args: list[Any], state: dict[str, Any]) -> BaseException:
    # The class that lays out the object, so that neither __new__ nor __init__ of the caller's runs.
    built_in: Any = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    rebuilt: BaseException = built_in.__new__(cls)
    for attribute, value in {"args": tuple(args), **state}.items():
        BaseException.__setattr__(rebuilt, attribute, value)
    return rebuilt


def _state(error: BaseException) -> dict[str, Any]:
    """Its attributes, those in slots and those that built-in exceptions keep in C included."""
    state = {}
    for cls in type(error).__mro__:
        if cls is BaseException:
            break
        for name, member in vars(cls).items():
            if isinstance(member, (MemberDescriptorType, GetSetDescriptorType)) and name not in _NO_STATE:
                value = getattr(error, name, None)
                if value is not None:
                    state[name] = value
    return {**state, **vars(error)}


def _equal(error: BaseException, rebuilt: BaseException) -> bool:
    return (
        type(rebuilt) is type(error)
        and same(rebuilt.args, error.args)
        and same(_state(rebuilt), _state(error))
        and _text(rebuilt) == _text(error)
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failed:  # the caller's own __str__
        return f"(its text cannot be had: {type(failed).__name__})"


def _name(cls: type[BaseException]) -> str:
    return f"{lasting_name(cls.__module__)}:{cls.__qualname__}"


def _with_subclasses(classes: Iterable[type[BaseException]]) -> Iterator[type[BaseException]]:
    for cls in classes:
        yield cls
        yield from _with_subclasses(cls.__subclasses__())
