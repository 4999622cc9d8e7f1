"""A kept answer's content coding, undone for a client that cannot read it (RFC 9110, section 8.4).

Where a framework compresses its answers inside of the idempotency layer, what is kept is compressed for the
client that asked first. A retry may come from one that asks for plain bytes.
"""

from __future__ import annotations

import zlib
from typing import Final

from idemcore.http.answer import HTTPAnswer
from idemcore.http.packed import GZIP_WINDOW, coding_of

MAX_DECODED: Final = 64 << 20
"""Bytes. An answer that unpacks to more is given as it is kept."""

_OF_ENCODED_BYTES: Final = frozenset(("content-encoding", "content-length", "content-digest", "content-md5"))


def readable(answer: HTTPAnswer, accept_encoding: str) -> HTTPAnswer:
    """The answer itself, or an unpacked one where it is gzip and the client does not ask for gzip.

    No Accept-Encoding at all permits any coding (RFC 9110, section 12.5.3), yet the clients that send none
    are those that cannot decode, so they get plain bytes.

    Args:
        answer: as it was kept.
        accept_encoding: of the retry; empty where it was not sent.
    """
    coding = answer.header("Content-Encoding")
    if coding is None or coding_of(coding) != "gzip" or _accepts_gzip(accept_encoding):
        return answer
    body = _unpacked(answer.body)
    if body is None:
        return answer
    headers = [
        (name, _weak(value) if name.lower() == "etag" else value)
        for name, value in answer.headers
        if name.lower() not in _OF_ENCODED_BYTES
    ]
    return answer._replace(headers=[*headers, ("Content-Length", str(len(body)))], body=body)


def _accepts_gzip(accept_encoding: str) -> bool:
    wildcard = False
    for item in accept_encoding.split(","):
        coding, _, parameter = item.partition(";")
        name, weight = coding_of(coding), parameter.replace(" ", "").lower()
        refused = weight.startswith("q=") and not weight[2:].strip("0.")
        if name == "gzip":
            return not refused
        wildcard = wildcard or (name == "*" and not refused)
    return wildcard


def _unpacked(body: bytes) -> bytes | None:
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    try:
        plain = unpacker.decompress(body, MAX_DECODED)
    except zlib.error:
        return None
    return plain if unpacker.eof and not unpacker.unused_data else None


def _weak(etag: str) -> str:
    """A strong validator names exact bytes, and these are others (RFC 9110, section 8.8.1)."""
    return etag if etag.startswith("W/") else "W/" + etag
