"""Canonical forms and fingerprints: what tells a retry from a different request.

`canonicalize` and `fingerprint` take Python values, dataclasses and pydantic models; `canonicalize_json` and
`fingerprint_json` take JSON texts. A `Canonicalizer` holds one rule for many requests. Nothing here knows a
store, a framework or a clock.

The files: `number` (texts of numbers), `order` (of members), `scan` (JSON text to tree), `values` and `models`
(Python values to tree), `exclude`, `write` and `write_slowly` (`tree` to text), `form`, which puts these
together, `fast` and `compiled_json` (the way over msgspec), `digest`, `fingerprinter` and `canonicalizer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

from cachetools import LRUCache, cached

from idemcore.machine import Fingerprinter

from .canonicalizer import BytesLike, Canonicalizer, OnInvalid
from .exclude import BESIDE
from .fingerprinter import JsonBody, Part, Rule
from .form import Mode
from .models import NOT_FINGERPRINTED, NotFingerprinted

__all__ = [
    "BESIDE",
    "NOT_FINGERPRINTED",
    "Canonicalizer",
    "Fingerprinter",
    "JsonBody",
    "NotFingerprinted",
    "Part",
    "Rule",
    "canonicalize",
    "canonicalize_json",
    "fingerprint",
    "fingerprint_json",
]


def canonicalize(value: object, *, exclude: Iterable[str] = (), mode: Mode = "exact") -> bytes:
    """The canonical form of a Python value, dataclass or pydantic model.

    >>> canonicalize({"b": 1.50, "a": [True, None]})
    b'{"a":[true,null],"b":1.5}'

    Args:
        value: read by its runtime types and never changed.
        exclude: JSON Pointers or bare top-level names; see `Canonicalizer`.
        mode: ``exact``, or ``rfc8785`` for the strict form.

    Raises:
        CanonicalizationError: naming the path of what has no canonical form.
        ConfigurationError: a malformed pointer.
    """
    return _rule(exclude, mode).canonicalize(value)


def canonicalize_json(body: BytesLike, *, exclude: Iterable[str] = (), mode: Mode = "exact") -> bytes:
    r"""The canonical form of a JSON text (RFC 8785, with each number's exact decimal value).

    >>> canonicalize_json(b'{ "b": 10.0, "a": "\\u00e9" }').decode()
    '{"a":"é","b":10}'

    Raises:
        CanonicalizationError: the text has no canonical form; see `Canonicalizer.canonicalize_json`.
        ConfigurationError: a malformed pointer.
    """
    return _rule(exclude, mode).canonicalize_json(body)


def fingerprint(value: object, *, exclude: Iterable[str] = (), mode: Mode = "exact") -> str:
    """The fingerprint of a value, ``v1.<config>:<64 hex digits>``.

    >>> fingerprint({"amount": 10}) == fingerprint({"amount": 10.0})
    True

    Raises:
        CanonicalizationError: naming the path of what has no canonical form.
        ConfigurationError: a malformed pointer.
    """
    return _rule(exclude, mode).fingerprint(value)


def fingerprint_json(
    body: BytesLike, *, exclude: Iterable[str] = (), mode: Mode = "exact", on_invalid: OnInvalid = "raw"
) -> str:
    """The fingerprint of a JSON text; of its bytes as they are where it has no canonical form.

    >>> fingerprint_json(b'{"a":1,"b":2}') == fingerprint_json(b'{"b":2.0, "a":1}')
    True

    Args:
        body: the text as it came.
        exclude: JSON Pointers or bare top-level names; see `Canonicalizer`.
        mode: ``exact``, or ``rfc8785`` for the strict form.
        on_invalid: ``raw``, or ``reject`` to raise instead.

    Raises:
        CanonicalizationError: only with ``reject``.
        ConfigurationError: a malformed pointer.
    """
    return _rule(exclude, mode, on_invalid).fingerprint_json(body)


_DEFAULT = Canonicalizer()


def _rule(exclude: Iterable[str], mode: Mode, on_invalid: OnInvalid = "raw") -> Canonicalizer:
    if exclude == () and mode == "exact" and on_invalid == "raw":
        return _DEFAULT
    # A str would become a tuple of its letters; it is passed on, to be refused.
    try:
        return _remembered(exclude if isinstance(exclude, str) else tuple(exclude), mode, on_invalid)
    except TypeError:  # not iterable or not hashable: the constructor refuses it and says why
        return Canonicalizer(exclude, mode, on_invalid=on_invalid)


@cached(LRUCache(maxsize=128), lock=Lock())
def _remembered(exclude: Any, mode: Mode, on_invalid: OnInvalid) -> Canonicalizer:
    return Canonicalizer(exclude, mode, on_invalid=on_invalid)
