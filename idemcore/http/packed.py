"""A gzip body, unpacked as it passes by: never more than its limit, and a large one into a temporary file.

Gzip's header holds the time of packing, so a retry rarely repeats its bytes; what was packed is what counts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from idemcore.http.spool import SPOOL_FROM, Spool, chunks_of

GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_CHUNK: Final = 1 << 16
_NAMES: Final = {"x-gzip": "gzip", "identity": ""}


def coding_of(content_encoding: str) -> str:
    """Its name, of which ``x-gzip`` is another for gzip; none of ``identity``, which says that there is none
    (RFC 9110, sections 8.4.1.3 and 12.5.3).
    """
    name = content_encoding.strip().lower()
    return _NAMES.get(name, name)


def unpacked(content_encoding: str, body: bytes | Spool, limit: int) -> bytes | Spool | None:
    """What a gzip body holds, up to `limit` bytes; None of any other, or where it is not whole."""
    if coding_of(content_encoding) != "gzip":
        return None
    held: list[bytes] = []
    spool: Spool | None = None
    size = 0
    try:
        for piece in _pieces(body):
            size += len(piece)
            if size > limit:
                return None
            held.append(piece)
            if size > SPOOL_FROM:
                spool = spool if spool is not None else Spool()
                spool.write(b"".join(held))
                held.clear()
    except (zlib.error, EOFError):
        return None
    return b"".join(held) if spool is None else spool


def _pieces(body: bytes | Spool) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    for packed in chunks_of(body):
        if unpacker.eof and packed:
            raise EOFError("bytes after the end")
        rest, piece = packed, b""
        # A piece as large as it may be is perhaps not all that came of the bytes that were taken.
        while rest or len(piece) == _CHUNK:
            piece = unpacker.decompress(rest, _CHUNK)
            rest = unpacker.unconsumed_tail
            yield piece
    if not unpacker.eof or unpacker.unused_data:
        raise EOFError("cut off, or bytes after the end")
