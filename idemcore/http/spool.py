"""A large body on disk, not in memory: written once, read as often as anybody likes, gone with its request."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import Final

SPOOL_FROM: Final = 1 << 20
"""Bytes. A body that is larger goes to a temporary file."""

_CHUNK: Final = 1 << 16


class Spool:
    """A body in a temporary file, as an input stream of PEP 3333.

    The file is closed, and so removed, when the last one who holds this object lets go of it: an application
    may still read while its answer is streamed.

    Attributes:
        size: in bytes.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the finalizer, see above
        self.size = 0
        weakref.finalize(self, self._file.close)

    def write(self, data: bytes) -> None:
        """Adds to the end."""
        self.size += self._file.write(data)

    def rewind(self) -> None:
        """Goes back to the start."""
        self._file.seek(0)

    def chunks(self) -> Iterator[bytes]:
        """All of it, piece by piece, from the start; rewound afterwards."""
        self.rewind()
        try:
            while chunk := self._file.read(_CHUNK):
                yield chunk
        finally:
            self.rewind()

    def read(self, size: int = -1, /) -> bytes:
        """As PEP 3333 has it."""
        return self._file.read(size)

    def readline(self, size: int = -1, /) -> bytes:
        """As PEP 3333 has it."""
        return self._file.readline(size)

    def readlines(self, hint: int = -1, /) -> list[bytes]:
        """As PEP 3333 has it."""
        return self._file.readlines(hint)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._file)


def chunks_of(content: bytes | Spool) -> Iterable[bytes]:
    """The content, piece by piece."""
    return (content,) if isinstance(content, bytes) else content.chunks()


def whole(content: bytes | Spool) -> bytes:
    """The content, all of it in memory."""
    return content if isinstance(content, bytes) else b"".join(content.chunks())
