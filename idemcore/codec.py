"""A function's result as bytes and back, with the same type and value; no pickle.

`TypeCodec` goes through pydantic and is made, and checked, from the declared type before anything runs;
pydantic is loaded with it and not before. `JSON` needs no declaration and takes exact JSON values only.
What would not come back the same is refused, never approximated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from idemcore.compact import scan, writer
from idemcore.errors import RecordUnreadable, ResultNotSerializable
from idemcore.exact import is_exact_json
from idemcore.fields_set import differences, put_right
from idemcore.same import same

T = TypeVar("T")


class Codec(Protocol[T]):
    """Turns a result into bytes and gives an equal one back."""

    def encode(self, value: T) -> bytes:
        """Raises ResultNotSerializable where the bytes would not give the same value back."""
        ...

    def decode(self, body: bytes) -> T:
        """Raises RecordUnreadable where the bytes do not fit the type (any more)."""
        ...


_write: Final = writer(ascii_only=False)


def _bytes_of(value: object) -> bytes:
    text = _write(value)
    return text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")


class _JSONCodec:
    def encode(self, value: Any) -> bytes:
        try:
            exact = is_exact_json(value)
        except RecursionError:  # it holds itself, or is nested too deep
            exact = False
        if not exact:
            raise ResultNotSerializable(
                f"A result of type {type(value).__name__} is no plain JSON value (dict with text keys, list, "
                "str, int, float, bool, None, all the way down) and would not come back the same. Annotate "
                "the function's return type, or give a codec."
            )
        return _bytes_of(value)

    def decode(self, body: bytes) -> Any:
        try:
            text = body.decode() if body.isascii() else body.decode("utf-8", "surrogatepass")
            value, end = scan(text, 0)
        except (ValueError, StopIteration, RecursionError) as error:
            raise RecordUnreadable("The kept result is no JSON; look at the record.") from error
        if end != len(text):
            raise RecordUnreadable("The kept result is no JSON but for its beginning; look at the record.")
        return value

    def __repr__(self) -> str:
        return "JSON"


JSON: Final[Codec[Any]] = _JSONCodec()
"""Takes plain JSON values and gives the same back; refuses what JSON would change, such as a tuple."""

_UNDECLARED: Final = b"="
"""Begins the body of a plain JSON value that is not of the declared type; no JSON text begins so."""

_SET: Final = b"~"
"""Begins the body of a value whose models have unset fields, before a line that says which are set.

All fields are written all the same: the default of an unset one may be another when it is read.
"""

_JSON_SCALARS: Final = (str, int, float, bool, type(None))


class TypeCodec:
    """Encodes by a declared type, through pydantic: models, dataclasses, Decimal, datetime, tuple and so on.

    Each value is read back once when it is encoded and compared, so what is kept is known to come back as
    it was. A plain JSON value of another type than declared (None from a function that promises a
    receipt) is kept as what it is. An aware datetime comes back with its offset, not with its zone's name.

    Args:
        declared: the type, such as ``Receipt`` or ``tuple[Decimal, UUID]``.

    Raises:
        ResultNotSerializable: no value of this type can be kept; the message names the type.
    """

    def __init__(self, declared: Any) -> None:
        self._declared = declared = type(None) if declared is None else declared
        self._scalar: Final[Any] = declared if any(declared is kind for kind in _JSON_SCALARS) else None
        adapter = _adapter(declared)
        self._read_json = adapter.validator.validate_json
        self._write_json = adapter.serializer.to_json

    def encode(self, value: Any) -> bytes:
        """See `Codec.encode`."""
        if type(value) is self._scalar and (type(value) is str or is_exact_json(value)):
            return _bytes_of(value)
        if hasattr(type(value), "__next__") and type(value) is not self._declared:
            raise self._differs(value)  # to write it would use up what its caller is to read
        try:
            # Fields under their own names: a field may have one alias to be read by and another to be written.
            body: bytes = self._write_json(value, by_alias=False, round_trip=True, warnings=False)
            back = self._read_json(body, by_alias=False, by_name=True)
            if same(value, back):
                return body
            if marks := list(differences(value, back)):
                put_right(back, marks)
                if same(value, back):
                    return b"%b%b\n%b" % (_SET, _bytes_of(marks), body)
        except Exception:  # noqa: S110 - whatever it was, the declared type does not hold this value
            pass
        try:
            return _UNDECLARED + JSON.encode(value)
        except ResultNotSerializable:
            raise self._differs(value) from None

    def decode(self, body: bytes) -> Any:
        """See `Codec.decode`."""
        first = body[:1]
        if first == _UNDECLARED:
            return JSON.decode(body[1:])
        if self._scalar is not None:
            value = JSON.decode(body)
            if type(value) is self._scalar:
                return value
        try:
            if first != _SET:
                return self._read_json(body, by_alias=False, by_name=True)
            marks, _, body = body[len(_SET) :].partition(b"\n")
            value = self._read_json(body, by_alias=False, by_name=True)
            put_right(value, json.loads(marks))
            return value
        except (ValueError, TypeError) as error:
            # Not chained: pydantic's errors quote their input.
            raise RecordUnreadable(
                f"The operation is done, and its kept result does not fit {type_name(self._declared)} "
                f"({type(error).__name__}): the type has changed since, or the record is damaged. Do not "
                "forget the record, which would run the work again; let the type read what it wrote before."
            ) from None

    def _differs(self, value: object) -> ResultNotSerializable:
        return ResultNotSerializable(
            f"A result of type {type(value).__name__} does not come back the same through the declared "
            f"return type {type_name(self._declared)}. Declare what the function returns, or give a codec."
        )

    def is_declared(self, body: bytes) -> bool:
        """Whether what was encoded is of the declared type, and not another plain JSON value."""
        return not body.startswith(_UNDECLARED)

    def __repr__(self) -> str:
        return f"TypeCodec({type_name(self._declared)})"


def type_name(declared: Any) -> str:
    """A type as messages call it."""
    return declared.__qualname__ if isinstance(declared, type) else str(declared)


def _adapter(declared: Any) -> Any:
    # Here, since loading it costs a tenth of a second that a program without declared results need not pay.
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
    try:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(declared, config=config)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            adapter = TypeAdapter(declared)  # a model, dataclass or TypedDict, which has a config of its own
        reason = _lost_in_json(adapter.core_schema)
    except Exception as error:
        reason = f"pydantic has no schema for it ({type(error).__name__})"
        if isinstance(error, PydanticUserError) and error.code == "typed-dict-version":
            reason += ", since on this Python it takes typing_extensions.TypedDict and not typing.TypedDict"
        raise _not_keepable(declared, reason) from error
    if reason is None and _hides_secrets(adapter):
        reason = "it holds a secret, which is masked wherever it is written"
    if reason is not None:
        raise _not_keepable(declared, reason)
    return adapter


def _not_keepable(declared: Any, reason: str) -> ResultNotSerializable:
    return ResultNotSerializable(
        f"Results of type {type_name(declared)} cannot be kept: {reason}. Return a model, a dataclass or plain "
        "values, such as the id of what was made, or give a codec."
    )


_LOST: Final = {
    "generator": "it holds an iterator, which can be read once only",
    "callable": "it holds a callable",
    "is-instance": "it holds a class that pydantic cannot write as JSON",
    "is-subclass": "it holds a class object",
}


def _lost_in_json(schema: object) -> str | None:
    """Why some part of a core schema has no way to JSON and back, or None."""
    if isinstance(schema, Mapping):
        kind = schema.get("type")
        if "serialization" in schema:
            return None  # it says itself how it is written
        if kind in _LOST:
            return _LOST[kind]
        if schema.get("serialization_exclude") is True:
            return "a field of it is excluded from what is written"
        # Of two ways to read it the one counts that reads JSON.
        one_way = {"json-or-python": "json_schema", "lax-or-strict": "lax_schema"}.get(str(kind))
        parts: Iterator[object] = iter([schema[one_way]] if one_way else schema.values())
    elif isinstance(schema, (list, tuple)):
        parts = iter(schema)
    else:
        return None
    return next(filter(None, map(_lost_in_json, parts)), None)


def _hides_secrets(adapter: Any) -> bool:
    try:
        return _holds_write_only(adapter.json_schema(mode="serialization"))
    except Exception:  # a type of the caller's own may have no JSON schema, and be kept all the same
        return False


def _holds_write_only(schema: object) -> bool:
    if isinstance(schema, Mapping):
        return schema.get("writeOnly") is True or any(map(_holds_write_only, schema.values()))
    return isinstance(schema, list) and any(map(_holds_write_only, schema))
