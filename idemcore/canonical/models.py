"""Models are read by the values they hold at run time, never through their dumps.

A pydantic dump prints every secret as the same mask, drops what a subclass adds to a field's declared
type, turns nan into null and writes sets in the order of their hashes. `idemcore` does not import
pydantic: a value can only be a model when somebody else has, so `sys.modules` is asked.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from idemcore.same import same

from .attributes import beside, refuse_others
from .number import Refused

_MAX_CLASSES = 1024
_MADE: Final = object()
_IMMUTABLE = frozenset(
    {str, int, float, bool, type(None), bytes, Decimal, UUID, date, time, datetime, timedelta}
)


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
    fields = frozenset(cls.model_fields)
    whole = fields if names == fields else None
    tags = frozenset(name for name, field in cls.model_fields.items() if _is_tag(field))
    defaults = {name: _static_default(cls, field) for name, field in cls.model_fields.items()}

    def content(model: Any) -> object:
        held = model.__dict__
        was_set = model.__pydantic_fields_set__
        if held.keys() == fields:
            if was_set == whole and not model.__pydantic_extra__:
                return held  # all there is, and it is only read
        elif not held.keys() <= fields:
            refuse_others(cls, held, fields)
        said = {
            name: held[name]
            for name in names
            if name in held and (name in was_set or name in tags or _was_changed(held[name], defaults[name]))
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


def _static_default(cls: Any, field: Any) -> object:
    """A default that all models share; _MADE for one that each gets anew, from a factory or a validation."""
    validated = field.validate_default
    if validated is None:
        validated = cls.model_config.get("validate_default")
    return _MADE if validated or field.default_factory is not None else field.default


def _was_changed(value: object, default: object) -> bool:
    """Whether an unset field's value was changed without pydantic's notice: in place, or by object.__setattr__.

    What each model gets anew cannot be compared with what it was: it counts as soon as it holds anything that
    can have been put into it.
    """
    kind = type(value)
    if default is _MADE:
        return kind not in _IMMUTABLE and _may_have_been_filled(value)
    if kind in _IMMUTABLE and value is default:
        return False
    if (kind is list or kind is dict) and value == default == kind():
        return False
    if is_model(value):
        return bool(reading_of_model(kind)(value))
    return value is not default and not same(value, default)


def _may_have_been_filled(value: Any) -> bool:
    kind = type(value)
    if kind is list or kind is dict:
        return bool(value)
    if isinstance(value, (str, bytes, range, enum.Enum)):
        return False
    if is_model(value):
        return bool(reading_of_model(kind)(value))
    if dataclasses.is_dataclass(kind):
        names = _fingerprinted(kind)
        if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # every dataclass has it
            return bool(names)
        return any(_may_have_been_filled(getattr(value, name)) for name in names)
    if isinstance(value, (tuple, frozenset)):
        return any(map(_may_have_been_filled, value))
    return isinstance(value, Collection) and len(value) > 0


def reading_of_dataclass(cls: type) -> Callable[[Any], object]:
    """How a dataclass of this very class is read: all its fields, those that a subclass adds included.

    One that holds more than its fields, such as what it made of an InitVar, is refused.
    """
    names = _fingerprinted(cls)
    fields = frozenset(field.name for field in dataclasses.fields(cls))
    check = beside(cls, object, fields)
    if check is None:
        return lambda value: {name: getattr(value, name) for name in names}
    whole = names == fields and cls.__dictoffset__ and not _has_accessors(cls, names)

    def content(value: Any) -> object:
        if whole and value.__dict__.keys() == fields:
            return value.__dict__  # all there is, and it is only read
        check(value)
        return {name: getattr(value, name) for name in names}

    return content


def _has_accessors(cls: type, names: Iterable[str]) -> bool:
    """Whether reading one of these attributes runs code of the class."""
    if any("__getattribute__" in vars(owner) for owner in cls.__mro__[:-1]):
        return True
    found = (vars(owner)[name] for name in names for owner in cls.__mro__ if name in vars(owner))
    return any(hasattr(type(attribute), "__set__") for attribute in found)


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
