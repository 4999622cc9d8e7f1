"""Models are read by the values they hold at run time, never through their dumps.

A pydantic dump prints every secret as the same mask, drops what a subclass adds to a field's declared
type, turns nan into null and writes sets in the order of their hashes. `idemcore` does not import
pydantic: a value can only be a model when somebody else has, so `sys.modules` is asked.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from .number import Refused

_MAX_CLASSES = 1024


class NotFingerprinted:
    """Marks a field of a pydantic model or dataclass that is no part of the request.

    Use it as ``sent_at: Annotated[datetime, NOT_FINGERPRINTED]``. Marking a field, or ceasing to, changes
    the fingerprints of the class; a retry from before the change is then refused, never run again.
    """

    def __repr__(self) -> str:
        return "NOT_FINGERPRINTED"


NOT_FINGERPRINTED: Final = NotFingerprinted()


def _loaded(module: str, *names: str) -> tuple[type, ...]:
    """Classes of a module, as far as anybody has imported it."""
    namespace = getattr(sys.modules.get(module), "__dict__", {})
    return tuple(namespace[name] for name in names if name in namespace)


def is_model(value: object) -> bool:
    """Whether this is an instance of a pydantic model."""
    return isinstance(value, _loaded("pydantic.main", "BaseModel"))


def is_secret(value: object) -> bool:
    """Whether this is a pydantic SecretStr, SecretBytes or Secret."""
    return isinstance(value, _loaded("pydantic.types", "SecretStr", "SecretBytes", "Secret"))


def is_address(value: object) -> bool:
    """Whether this is an IP address, network or interface, or a URL of pydantic's: their text says it all."""
    return isinstance(
        value,
        _loaded("ipaddress", "IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network")
        + _loaded("pydantic_core", "Url", "MultiHostUrl")
        + _loaded("pydantic.networks", "_BaseUrl", "_BaseMultiHostUrl"),
    )


def reading_of_model(cls: Any) -> Callable[[Any], object]:
    """How a model of this very class is read: the fields that were set, with extras; the root of a root model.

    An unset field holds its default, and a default made by a factory (a new UUID, the time) differs in
    every retry, so unset fields are left out. A default that was changed in place is not unset any more,
    although pydantic does not note it. A tag, such as ``type: Literal["refund"] = "refund"``, is written
    either way: it may be all that tells two models apart, and no retry has another one.
    """
    if getattr(cls, "__pydantic_root_model__", False):
        return lambda model: model.__dict__["root"]
    names = _fingerprinted(cls)
    tags = frozenset(name for name, field in cls.model_fields.items() if _is_tag(field))

    def content(model: Any) -> object:
        held = model.__dict__
        was_set = model.__pydantic_fields_set__
        if held.keys() == names == was_set and not model.__pydantic_extra__:
            return held  # all there is, and it is only read
        said = {
            name: held[name]
            for name in names
            if name in held
            and (name in was_set or name in tags or _changed_in_place(held[name], cls.model_fields[name]))
        }
        if model.__pydantic_extra__:
            for name, value in model.__pydantic_extra__.items():
                if name in cls.model_fields:  # possible where the field is filled by an alias
                    raise Refused(f"the extra member {name!r} has the name of a field")
                said[name] = value
        return said

    return content


def _is_tag(field: Any) -> bool:
    """Whether a field is of a Literal type, and its default says which value and is no matter of chance."""
    values = _literals(field.annotation)
    return bool(values) and field.default is not None and (len(values) == 1 or field.default_factory is None)


def _literals(annotation: Any) -> tuple[object, ...]:
    """The values of a Literal type or of a union of such, None among them; nothing for any other type."""
    origin = get_origin(annotation)
    if origin is Literal:
        return get_args(annotation)
    if origin is Annotated:
        return _literals(get_args(annotation)[0])
    if origin is Union or origin is UnionType:
        arms = [(None,) if arm is NoneType else _literals(arm) for arm in get_args(annotation)]
        return tuple(value for arm in arms for value in arm) if all(arms) else ()
    if type(annotation).__name__ == "TypeAliasType":  # of typing, or of typing_extensions
        return _literals(annotation.__value__)
    return ()


def _changed_in_place(value: object, field: Any) -> bool:
    """Whether an unset field's value was changed without being assigned.

    Only containers and models can be; what a factory made of them counts as soon as it says anything.
    """
    if is_model(value):
        return bool(reading_of_model(type(value))(value))
    if not isinstance(value, (list, dict, set, bytearray)):
        return False
    if field.default_factory is not None:
        return bool(value)
    return bool(value != field.default)


def reading_of_dataclass(cls: type) -> Callable[[Any], object]:
    """How a dataclass of this very class is read: all its fields, those that a subclass adds included."""
    names = _fingerprinted(cls)
    return lambda value: {name: getattr(value, name) for name in names}


_fingerprinted_names: dict[type, frozenset[str]] = {}


def _fingerprinted(cls: type) -> frozenset[str]:
    """The names of a class's fields that are not marked with NOT_FINGERPRINTED."""
    names = _fingerprinted_names.get(cls)
    if names is None:
        metadata = _dataclass_metadata(cls) if dataclasses.is_dataclass(cls) else _model_metadata(cls)
        names = frozenset(name for name, marks in metadata if not any(_is_mark(mark) for mark in marks))
        if len(_fingerprinted_names) >= _MAX_CLASSES:
            _fingerprinted_names.clear()
        _fingerprinted_names[cls] = names
    return names


def _is_mark(mark: object) -> bool:
    return isinstance(mark, NotFingerprinted) or mark is NotFingerprinted


def _model_metadata(cls: Any) -> Iterator[tuple[str, Iterable[object]]]:
    for name, field in cls.model_fields.items():
        yield name, field.metadata


def _dataclass_metadata(cls: Any) -> Iterator[tuple[str, Iterable[object]]]:
    fields = dataclasses.fields(cls)
    hints: dict[str, Any] = {}
    if any(isinstance(field.type, str) for field in fields):
        try:
            hints = get_type_hints(cls, include_extras=True)
        except (RecursionError, MemoryError):
            raise  # says nothing about the annotations, and the answer would be remembered
        except Exception as error:
            if any("NOT_FINGERPRINTED" in str(field.type) for field in fields):
                raise Refused(f"the annotations of {cls.__name__} cannot be resolved") from error
    for field in fields:
        yield field.name, get_args(hints.get(field.name, field.type))[1:]
