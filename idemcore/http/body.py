"""Reads a request's body whole, never past its end, within a limit, before anything is claimed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from idemcore.errors import LengthRequired, RequestIncomplete, RequestTooLarge
from idemcore.http.spool import SPOOL_FROM, Spool

_log: Final = logging.getLogger("idemcore")
_CHUNK: Final = 1 << 16
_MAX_DIGITS: Final = 19


def body_length(content_length: str | None, transfer_encoding: str | None, *, ends_itself: bool) -> int | None:
    """How many bytes to read; None where the stream ends by itself.

    Args:
        content_length: the header's value, None or empty where it was not sent.
        transfer_encoding: the header's value, likewise.
        ends_itself: whether the server promises that reading stops at the body's end
            (``wsgi.input_terminated``).

    Raises:
        RequestIncomplete: the announced length is no number (RFC 9110, section 8.6).
        LengthRequired: the body is chunked and the server hands it over without an end.
    """
    if transfer_encoding:
        if not ends_itself:
            raise LengthRequired(
                "This server does not say where a chunked body ends; send it with a Content-Length."
            )
        return None
    if not content_length:
        return None if ends_itself else 0
    if not (content_length.isascii() and content_length.isdecimal()):
        raise RequestIncomplete("The Content-Length is no number; send the request again with a right one.")
    return number_of(content_length)


def number_of(digits: str) -> int:
    """A length in bytes; int() refuses absurdly long texts, which are too large in any case."""
    if len(digits) <= _MAX_DIGITS:
        return int(digits)
    return int((digits.lstrip("0") or "0")[:_MAX_DIGITS])


def read_body(read: Callable[[int], bytes], length: int | None, limit: int) -> bytes | Spool:
    """The body; a large one in a temporary file, rewound.

    Args:
        read: of the server's stream; asked for no more than is left of `length`.
        length: in bytes, None to read until the end.
        limit: in bytes; a larger body is refused, an announced one before it is read.

    Raises:
        RequestTooLarge: the body is larger than `limit`.
        RequestIncomplete: the stream ended before `length`.
    """
    if length is not None and length > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    spool: Spool | None = None
    size = 0
    while length is None or size < length:
        try:
            chunk = read(_CHUNK if length is None else min(_CHUNK, length - size))
        except Exception as error:
            # For a broken connection or a malformed chunk each server has an error of its own.
            _log.info("reading a request's body failed with %s", type(error).__name__)
            raise RequestIncomplete(
                "The body could not be read to its end; nothing was run. Send the same request again."
            ) from error
        if not chunk:
            break
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
        if size > SPOOL_FROM:
            spool = spool if spool is not None else Spool()
            spool.write(b"".join(chunks))
            chunks.clear()
    if length is not None and size < length:
        raise RequestIncomplete(
            "The body ended before its announced length; nothing was run. Send the same request again."
        )
    if spool is None:
        return b"".join(chunks)
    spool.rewind()
    return spool


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"A request with an idempotency key may have a body of at most {limit} bytes here.")
