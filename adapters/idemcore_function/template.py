"""A key or a scope as a template over a call's arguments: ``"{invoice.id}"``, ``"{order[id]}-{line}"``.

A template reads; it neither formats nor reaches behind the surface: no format specifications, no
conversions, no names that begin with an underscore. Values cannot slide into each other: where there are
several, each one's own occurrences of what separates them are escaped.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Collection, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from string import Formatter
from typing import Any, Final, TypeAlias
from uuid import UUID

from idemcore import CallerError, ConfigurationError, canonicalize

_FIELD: Final = re.compile(r"([^\W\d]\w*)((?:\.[^\W\d]\w*|\[[^\[\]{}]+\])*)")
_STEP: Final = re.compile(r"\.(\w+)|\[([^\]]+)\]")


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A step by index or by name into a container, as opposed to one by attribute."""

    at: int | str


Steps: TypeAlias = tuple[str | Member, ...]


class Template:
    """A compiled template; call it with the arguments by name.

    Args:
        text: the template.
        parameters: of the function that it reads arguments of.
        declared: their types, as far as they are known; what a dataclass or model does not have is
            refused now.
        missing: what to raise where a value is None or empty.

    Attributes:
        names: the parameters that it reads.

    Raises:
        ConfigurationError: it is malformed, reads nothing, or reads what is not there.
    """

    def __init__(
        self,
        text: str,
        parameters: Collection[str],
        declared: Mapping[str, Any],
        missing: type[CallerError],
    ) -> None:
        self._text = text
        self._missing = missing
        self._parts: list[tuple[str, str, Steps, Callable[[Any], Any] | None]] = []
        self._tail = ""
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise ConfigurationError(f"The template {text!r} is malformed: {error}.") from None
        for literal, field, spec, conversion in parsed:
            if field is None:
                self._tail += literal
                continue
            if spec or conversion:
                raise ConfigurationError(f"The template {text!r} formats {{{field}}}; a template only reads.")
            name, steps = _compiled(text, field, parameters)
            _check(text, declared.get(name), steps)
            self._parts.append((self._tail + literal, name, steps, _attribute(steps)))
            self._tail = ""
        if not self._parts:
            raise ConfigurationError(
                f"The template {text!r} reads no argument, so every call would be the same operation; "
                "write one such as '{invoice.id}'."
            )
        self._escape = self._separators()
        literal, name, steps, _ = self._parts[0]
        self._is_value = len(self._parts) == 1 and not literal and not self._tail
        self._only = name if self._is_value and not steps else None
        self.names: Final = frozenset(name for _, name, *_ in self._parts)

    def _separators(self) -> re.Pattern[str] | None:
        """What has to be escaped in values: what each separator begins with, and the escape itself."""
        between = [literal for literal, *_ in self._parts[1:]]
        if any(not literal or literal.startswith("%") for literal in between):
            raise ConfigurationError(
                f"The template {self._text!r} needs a separator between its values, one that does not begin "
                "with '%': without it two different calls could come to one text."
            )
        if not between:
            return None
        return re.compile(f"[%{''.join(re.escape(literal[0]) for literal in between)}]")

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        """The text for these arguments.

        Raises:
            CallerError: the `missing` one, where a value is None or empty.
            ConfigurationError: a value is of a type that has no text of its own.
        """
        if self._only:
            value = arguments[self._only]
            if value and type(value) is str:
                return value
        escape, texts = self._escape, []
        for literal, name, steps, attribute in self._parts:
            value = arguments[name]
            if attribute is None:
                value = self._followed(value, steps)
            else:
                try:
                    value = attribute(value)
                except (AttributeError, KeyError, IndexError, TypeError):  # which one step alone can name
                    value = self._followed(value, steps)
            text = value if type(value) is str else self._text_of(value, name)
            if not text:
                raise self._missing(f"{{{_path(name, steps)}}} in {self._text!r} came out as None or empty.")
            if self._is_value:
                return text
            if escape is not None:
                text = escape.sub(_escaped, text)
            texts.append(literal + text)
        return "".join(texts) + self._tail

    def _followed(self, value: Any, steps: Steps) -> Any:
        for step in steps:
            value = self._stepped(value, step)
        return value

    def _stepped(self, value: Any, step: str | Member) -> Any:
        if value is None:
            return None
        try:
            return value[step.at] if isinstance(step, Member) else getattr(value, step)
        except (KeyError, IndexError):
            return None
        except AttributeError as error:
            hint = f"; write '[{step}]' for a member of a dict" if isinstance(value, Mapping) else ""
            raise ConfigurationError(
                f"The template {self._text!r} reads {step!r} of a {type(value).__name__}, which has no such "
                f"attribute{hint}."
            ) from error
        except TypeError as error:
            raise ConfigurationError(
                f"The template {self._text!r} reads a member of a {type(value).__name__}, which has none."
            ) from error

    def _text_of(self, value: object, name: str) -> str:
        try:
            return text_of(value)
        except TypeError as error:
            raise ConfigurationError(f"The template {self._text!r} reads {{{name}…}}: {error}") from None


def text_of(value: object) -> str:
    """The text that stands for a value in a key; empty for None.

    Raises:
        TypeError: the value has no text that is the same in every process.
    """
    if value is None:
        return ""
    if isinstance(value, Enum):
        return text_of(value.value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (int, float, Decimal, date, time, timedelta)):
        return canonicalize(value).decode().strip('"')
    raise TypeError(
        f"a {type(value).__name__} is no part of a key; read an id of it, a str, int or UUID, such as '.id'."
    )


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _compiled(text: str, field: str, parameters: Collection[str]) -> tuple[str, Steps]:
    found = _FIELD.fullmatch(field)
    if found is None:
        raise ConfigurationError(
            f"The template {text!r} holds {{{field}}}, which reads nothing; write '{{invoice.id}}', or "
            "'{order[id]}' for a member of a dict."
        )
    name = found[1]
    if name not in parameters:
        known = ", ".join(parameters) or "none"
        raise ConfigurationError(
            f"The template {text!r} reads {name!r}; the function's parameters are: {known}."
        )
    steps: list[str | Member] = []
    for attribute, member in _STEP.findall(found[2]):
        if attribute.startswith("_"):
            raise ConfigurationError(f"The template {text!r} reads {attribute!r}, which is not public.")
        if attribute:
            steps.append(attribute)
        else:
            steps.append(Member(int(member) if member.isascii() and member.isdigit() else member))
    return name, tuple(steps)


def _attribute(steps: Steps) -> Callable[[Any], Any] | None:
    """Reads what the usual steps lead to, attributes alone, in one call; None for others."""
    names = [step for step in steps if isinstance(step, str)]
    return attrgetter(".".join(names)) if names and len(names) == len(steps) else None


def _path(name: str, steps: Steps) -> str:
    return name + "".join(f"[{step.at}]" if isinstance(step, Member) else f".{step}" for step in steps)


def _check(text: str, declared: Any, steps: Steps) -> None:
    """Refuses an attribute that the declared type, a dataclass or a model, is known not to have."""
    for step in steps:
        if not isinstance(declared, type) or isinstance(step, Member):
            return
        fields = _fields(declared)
        if fields is None:
            return
        if step not in fields and not hasattr(declared, step):
            raise ConfigurationError(
                f"The template {text!r} reads {step!r}; the fields of {declared.__qualname__} are: "
                f"{', '.join(fields)}."
            )
        declared = fields.get(step)


def _fields(declared: type) -> dict[str, Any] | None:
    """The fields of a dataclass or model and their types; None for a type that may have any attribute."""
    if hasattr(declared, "__getattr__"):
        is_open = (
            not hasattr(declared, "model_fields")
            or getattr(declared, "model_config", {}).get("extra") == "allow"
        )
        if is_open:
            return None
    model_fields = getattr(declared, "model_fields", None)
    if isinstance(model_fields, dict):
        return {name: field.annotation for name, field in model_fields.items()}
    if not dataclasses.is_dataclass(declared):
        return None
    try:
        hints = typing.get_type_hints(declared)
    except Exception:  # a name that is known to type checkers alone: then the types say nothing here
        hints = {}
    return {field.name: hints.get(field.name) for field in dataclasses.fields(declared)}
