"""What kind of value each HTTP option takes; checked at start-up, before anything reads the values.

Nothing is guessed: ``fail_open="false"`` is a text, and a text that is not empty would count as yes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Final

from idemcore.errors import ConfigurationError
from idemcore.http.headers import is_free, is_token


def check_type(name: str, value: object) -> None:
    """Refuses a value that is not of its option's kind; what it may say beyond that is not looked at.

    Args:
        name: of an option; one whose rule stands elsewhere passes.
        value: what was given.

    Raises:
        ConfigurationError: it is another kind, with a word on what to write.
    """
    rule = _RULES.get(name)
    if rule is not None and not rule[0](value):
        raise ConfigurationError(f"{name} is {rule[1]}, not {type(value).__name__} {value!r}.")


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_texts(value: object) -> bool:
    """A single text is a collection of texts too, and never the one that was meant."""
    return (
        isinstance(value, Collection)
        and not isinstance(value, (str, bytes, Mapping))
        and all(isinstance(item, str) for item in value)
    )


def _are_methods(value: object) -> bool:
    return isinstance(value, Collection) and bool(value) and _are_texts(value) and all(map(is_token, value))


def _are_statuses(value: object) -> bool:
    return value is None or (
        isinstance(value, Mapping)
        and all(isinstance(code, str) for code in value)
        and all(_is_size(status) and 400 <= status <= 599 for status in value.values())
    )


_RULES: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    **dict.fromkeys(
        ("fail_open", "keep_body"),
        (lambda value: isinstance(value, bool), "True or False"),
    ),
    **dict.fromkeys(
        ("max_request_bytes", "max_response_bytes"),
        (_is_size, "a number of bytes that is not negative, such as 1_048_576"),
    ),
    **dict.fromkeys(
        ("wait", "retention", "lease", "max_hold"),
        (lambda value: isinstance(value, timedelta), "a timedelta, such as timedelta(seconds=30)"),
    ),
    **dict.fromkeys(
        ("exclude", "exclude_query", "keep_headers", "drop_headers"),
        (_are_texts, "a list or a tuple of texts"),
    ),
    **dict.fromkeys(
        ("header", "replayed_header"),
        (is_free, "the name of a header that means nothing else, such as 'Idempotency-Key'"),
    ),
    "methods": (_are_methods, "a list or a tuple of one or more methods, such as ['POST', 'PUT']"),
    "statuses": (
        _are_statuses,
        "a mapping from codes to statuses of 400 to 599, such as {'idempotency_key_missing': 428}",
    ),
    "problem_types": (
        lambda value: isinstance(value, str),
        "a text, such as 'https://api.example.com/problems/'",
    ),
}
