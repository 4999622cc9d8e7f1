"""Classes of one argument that differ by their names alone, which are no part of a fingerprint."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from itertools import combinations
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from idemcore import ConfigurationError


def refuse_alike(declared: Mapping[str, Any], left_out: Collection[str], namespace: str) -> None:
    """An argument that is a debit or a credit of equal fields makes them one request.

    Args:
        declared: the annotations of parameters and result, as objects.
        left_out: the parameters that are not compared.
        namespace: names the function in messages.

    Raises:
        ConfigurationError: an argument is a union of dataclasses or models with the same fields, types and
            defaults, of which none can say which it is.
    """
    for name, annotation in declared.items():
        if name == "return" or name in left_out:
            continue
        for one, other in _alternatives(annotation):
            fields = _fields(one)
            if fields is not None and fields == _fields(other) and not _may_say_which(fields):
                kind = repr(one.__name__.lower())
                raise ConfigurationError(
                    f"{name!r} of {namespace} may be {one.__name__} or {other.__name__}, which have the same "
                    "fields: what a class is called is not compared, so one would get the result of the other. "
                    f"Give each a field that says which it is, such as kind: Literal[{kind}] = {kind}, or a "
                    "function of its own, or give a callable as key= that tells them apart."
                )


def _alternatives(annotation: Any) -> Iterator[tuple[type, type]]:
    """The pairs of classes of each union in it."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        yield from combinations([part for part in parts if isinstance(part, type)], 2)
    if origin is not Literal:
        for part in parts:
            yield from _alternatives(part)


def _fields(cls: type) -> dict[str, tuple[object, object]] | None:
    """Types and defaults by name; None where it is no dataclass or model, or its types are not known yet."""
    if dataclasses.is_dataclass(cls):
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    elif isinstance(models := getattr(cls, "model_fields", None), Mapping):
        defaults = {name: field.default for name, field in models.items()}
    else:
        return None
    try:
        types = get_type_hints(cls)
        return {name: (types[name], default) for name, default in defaults.items()}
    except Exception:  # whatever the text of an annotation runs into
        return None


def _may_say_which(fields: Mapping[str, tuple[object, object]]) -> bool:
    return any(
        len(get_args(kind)) > 1
        if get_origin(kind) is Literal
        else isinstance(kind, type) and issubclass(kind, Enum)
        for kind, _ in fields.values()
    )
