"""The query and the body as parts of a fingerprint: each compared by what it means, else by its bytes.

What a rule excludes of a JSON body, by the name of a top-level member, it excludes of a form too.
"""

from __future__ import annotations

import hashlib
from typing import Final, final
from urllib.parse import unquote_to_bytes

from idemcore.canonical import BESIDE, JsonBody, Part, Rule
from idemcore.http.multipart import canonical_multipart
from idemcore.http.packed import coding_of, unpacked
from idemcore.http.spool import Spool, chunks_of, whole

_MAX_PAIRS: Final = 10_000
"""More fields than any form has are compared as they came: taking them apart would cost a gigabyte."""
_SLICE: Final = 1 << 12
_QUERY: Final = BESIDE + "query/"
"""Excluded parameters stand among a rule's JSON Pointers, so that its tag tells of them too."""


def query_parameters(*names: str) -> tuple[str, ...]:
    """Query parameters that do not count, as what a Canonicalizer takes among its `exclude`."""
    return tuple(_QUERY + name.replace("~", "~0").replace("/", "~1") for name in names)


def query_part(query: str) -> bytes | Part:
    """A raw query string."""
    return _Query(query.encode("utf-8", "surrogatepass")) if query else b""


def body_part(
    media_type: str, content_type: str, content_encoding: str, body: bytes | Spool, max_decoded: int
) -> bytes | Part:
    """A body by its media type; unpacked first where it is gzip and becomes no larger than `max_decoded`.

    What the bytes of any other coding mean hangs on its name.
    """
    if content_encoding and (coding := coding_of(content_encoding)):
        plain = unpacked(coding, body, max_decoded)
        if plain is None:
            return b"coded" + _raw(body) + coding.encode("utf-8", "surrogatepass")
        return _Packed(body_part(media_type, content_type, "", plain, 0))
    if is_json(media_type):
        return JsonBody(whole(body))
    if media_type == "application/x-www-form-urlencoded":
        return _Form(whole(body))
    if media_type.startswith("multipart/"):
        return _Multipart(content_type, body)
    return _raw(body)


def media_type_of(content_type: str) -> str:
    """Type and subtype in lower case; parameters such as charset do not count."""
    return content_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """``application/json`` and every type with the suffix ``+json`` (RFC 6839, section 3.1)."""
    return media_type == "application/json" or media_type.endswith("+json")


def _raw(body: bytes | Spool) -> bytes:
    """Byte by byte: by a digest, so that a large body passes by and is never held."""
    digest = hashlib.sha256()
    for chunk in chunks_of(body):
        digest.update(chunk)
    return b"raw" + digest.digest()


@final
class _Query:
    def __init__(self, text: bytes) -> None:
        self._text = text

    def digest(self, rule: Rule, /) -> bytes:
        named = (pointer.removeprefix(_QUERY) for pointer in rule.exclude if pointer.startswith(_QUERY))
        return _canonical_pairs(self._text, frozenset(map(_unescaped, named)))


@final
class _Form:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def digest(self, rule: Rule, /) -> bytes:
        return b"form" + _canonical_pairs(self._body, _top_level(rule))


@final
class _Multipart:
    def __init__(self, content_type: str, body: bytes | Spool) -> None:
        self._content_type = content_type
        self._body = body

    def digest(self, rule: Rule, /) -> bytes:
        parts = canonical_multipart(self._content_type, chunks_of(self._body), _top_level(rule))
        if parts is not None:
            return b"parts" + parts
        # What the bytes mean hangs on the boundary: one body can hold different fields under two of them.
        return _raw(self._body) + self._content_type.encode("utf-8", "surrogatepass")


@final
class _Packed:
    def __init__(self, plain: bytes | Part) -> None:
        self._plain = plain

    def digest(self, rule: Rule, /) -> bytes:
        plain = self._plain
        return b"gzip" + (plain if isinstance(plain, bytes) else plain.digest(rule))


def _top_level(rule: Rule) -> frozenset[bytes]:
    """The fields that an exclusion names: what it calls a member of a JSON body is a field of a form."""
    return frozenset(_unescaped(pointer[1:]) for pointer in rule.exclude if pointer.count("/") == 1)


def _unescaped(token: str) -> bytes:
    return token.replace("~1", "/").replace("~0", "~").encode()


def _canonical_pairs(text: bytes, exclude: frozenset[bytes]) -> bytes:
    """Names and values of a query or a form, sorted by name; what repeats a name keeps its order.

    Names with ``[]`` build nested lists in some frameworks, so all that share what stands before the
    brackets keep their order among each other.
    """
    if not text:
        return b""
    if text.count(b"&") >= _MAX_PAIRS:
        return b"raw" + text
    pairs: list[tuple[bytes, bytes, bytes]] = []
    for field in text.split(b"&"):
        name, equals, value = field.partition(b"=")
        decoded = _decode(name)
        if decoded not in exclude:
            pairs.append((decoded.partition(b"[]")[0], decoded, equals + _decode(value)))
    pairs.sort(key=lambda pair: pair[0])
    framed: list[bytes] = []
    for _, name, value in pairs:
        framed += (b"%d:" % len(name), name, b"%d:" % len(value), value)
    return b"".join(framed)


def _decode(text: bytes) -> bytes:
    """Percent-decoded, in slices, for `unquote_to_bytes` makes an object of each escape that it is given.

    A slice never ends inside of an escape: that has no second ``%``, so before a ``%`` is a good place.
    """
    text = text.replace(b"+", b" ")
    if len(text) <= _SLICE:
        return unquote_to_bytes(text)
    decoded: list[bytes] = []
    start = 0
    while start < len(text):
        end = start + _SLICE
        escape = text.find(b"%", end - 2, end)
        end = escape if escape >= 0 else end
        decoded.append(unquote_to_bytes(text[start:end]))
        start = end
    return b"".join(decoded)
