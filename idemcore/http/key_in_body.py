"""A key that stands in the body: an inbound webhook's event id names its operation.

A JSON Pointer says where it stands; a callable takes the whole request. Neither finding one is the same as
a header that was not sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from idemcore.errors import ConfigurationError
from idemcore.http.callables import refuse_unfit
from idemcore.http.packed import unpacked
from idemcore.http.request import Request
from idemcore.http.spool import whole
from idemcore.unfinished import close_coroutine

KeyOf: TypeAlias = Callable[[Request], str | None]


def key_reader(where: str | KeyOf, max_decoded: int) -> KeyOf:
    """What finds the key of a request.

    Args:
        where: a JSON Pointer (RFC 6901) to a string or an integer, or a callable that returns the key.
        max_decoded: how many bytes a packed body may have unpacked for a pointer to be followed.

    Raises:
        ConfigurationError: it is neither; from the callable, where it returns another thing.
    """
    if callable(where):
        refuse_unfit("key", where)
        return lambda request: _text(where(request))
    if not isinstance(where, str) or not where.startswith("/"):
        raise ConfigurationError(
            "key is a JSON Pointer into the body, such as '/id', or a callable that takes the request."
        )
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in where[1:].split("/")]
    return lambda request: _at(tokens, _plain(request, max_decoded))


def _text(key: object) -> str | None:
    if key is None or isinstance(key, str):
        return key
    close_coroutine(key)
    raise ConfigurationError(f"key returns a text or None, not {type(key).__name__}.")


def _plain(request: Request, max_decoded: int) -> bytes:
    if not request.content_encoding:
        return request.body
    plain = unpacked(request.content_encoding, request.content, max_decoded)
    return whole(plain) if plain is not None else request.body


def _at(tokens: list[str], body: bytes) -> str | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for token in tokens:
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isascii() and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value)
