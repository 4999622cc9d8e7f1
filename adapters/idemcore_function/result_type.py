"""How a function's result is kept, found out when it is decorated: from its annotation, or as plain JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any, Final, ForwardRef, Literal, Never, NoReturn, TypeAlias

from idemcore import ConfigurationError, ResultNotSerializable
from idemcore.codec import JSON, Codec, TypeCodec

Unannotated: TypeAlias = Literal["json", "refuse"]

_SAYS_NOTHING: Final = (Any, object, NoReturn, Never)
_MAX_FRAMES: Final = 4


class Unresolved:
    """An annotation that names what does not exist yet, or for type checkers only."""


UNRESOLVED: Final = Unresolved()


def annotations_of(function: Callable[..., object], frame: FrameType | None) -> dict[str, Any]:
    """The annotations of parameters and result as objects, each UNRESOLVED where its name leads nowhere.

    Args:
        function: to read them of.
        frame: where it was decorated, whose local names annotations written as text may use.
    """
    body = _body(function)
    written = dict(getattr(body, "__annotations__", {}))
    if not any(isinstance(annotation, str) for annotation in written.values()):
        return written
    module = getattr(body, "__globals__", {})
    local: dict[str, Any] = {}
    for _ in range(_MAX_FRAMES):
        if frame is None or frame.f_globals is not module:
            break
        local = {**frame.f_locals, **local}
        frame = frame.f_back
    return {name: _resolved(annotation, module, local) for name, annotation in written.items()}


def _body(function: Callable[..., object]) -> Callable[..., object]:
    """What stands behind wrappers, partials and objects that are called."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    return function if inspect.isroutine(function) else type(function).__call__


def _resolved(annotation: Any, module: dict[str, Any], local: Mapping[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        # The annotation is the program's own text, not a caller's.
        return eval(ForwardRef(annotation).__forward_code__, module, local)  # noqa: S307 - as said above
    except Exception:  # whatever its text runs into
        return UNRESOLVED


def codec_for(annotations: Mapping[str, Any], unannotated: Unannotated, where: str) -> Codec[Any]:
    """The codec for a function's results.

    Args:
        annotations: of the function; see `annotations_of`.
        unannotated: what to do where it declares no result: plain JSON, or refuse.
        where: names the function in messages.

    Raises:
        ResultNotSerializable: results of the declared type cannot be kept.
        ConfigurationError: the type is not known yet, or there is none and that is refused.
    """
    if "return" not in annotations:
        if unannotated == "refuse":
            raise ConfigurationError(
                f"{where} does not say what it returns; annotate its return type, or give a codec."
            )
        return JSON
    declared = annotations["return"]
    if declared is UNRESOLVED:
        raise ConfigurationError(
            f"The return type of {where} is not known where it is decorated; define or import it above "
            "(outside of TYPE_CHECKING), or give a codec."
        )
    if any(declared is nothing for nothing in _SAYS_NOTHING):
        return JSON
    try:
        return TypeCodec(declared)
    except ResultNotSerializable as error:
        raise ResultNotSerializable(f"{where}: {error}") from error.__cause__
