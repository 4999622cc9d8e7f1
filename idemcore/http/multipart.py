r"""A multipart body, part by part, whatever its boundary (RFC 2046, section 5.1; RFC 7578).

HTTP libraries draw a new boundary for each attempt, so a retry never repeats the bytes. What counts of each
part, in order, are its header fields and its content. Anything that is not written strictly, with CRLF and
without preamble or epilogue, is left to be compared byte by byte: so is what frameworks take apart in
different ways, such as two boundaries, or a delimiter after a bare LF. Nothing larger than a part's head is
ever held: contents are hashed as they pass by.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final

MAX_PARTS: Final = 10_000
MAX_HEAD: Final = 1 << 14
_PARAMETER: Final = re.compile(
    r"""[ \t]*;[ \t]*(?P<name>[!#$%&'*+.^_`|~0-9a-z-]+)="""
    r"""(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[!#$%&'*+.^_`|~0-9a-z-]+))""",
    re.IGNORECASE | re.ASCII,
)
"""RFC 9110, section 5.6.6."""
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
"""RFC 2046, section 5.1.1."""
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*")
_NAME: Final = re.compile(rb';\s*name="([^"\\]*)"')


def canonical_multipart(content_type: str, chunks: Iterable[bytes], exclude: frozenset[bytes]) -> bytes | None:
    """The parts, each framed by its lengths; None where the body is not strictly multipart.

    Args:
        content_type: the header's value, with the boundary.
        chunks: the body, cut anywhere.
        exclude: names of fields that do not count.
    """
    boundary = _boundary(content_type)
    if boundary is None:
        return None
    try:
        return _frames(_cut(chunks, b"\r\n--" + boundary), exclude)
    except _Loose:
        return None


class _Loose(Exception):
    """A delimiter stands where some parsers cut and others do not."""


def _boundary(content_type: str) -> bytes | None:
    """The one boundary that every parser finds; None where there is none, or where they may differ."""
    start = content_type.find(";")
    if start < 0:
        return None
    found: str | None = None
    end = len(content_type.rstrip(" \t"))
    while start < end:
        parameter = _PARAMETER.match(content_type, start)
        if parameter is None:
            return None
        name = parameter["name"].lower()
        if name.partition("*")[0] == "boundary":
            if found is not None or name != "boundary":
                return None
            found = parameter["bare"] or parameter["quoted"]
        start = parameter.end()
    return None if found is None or not _BOUNDARY.fullmatch(found) else found.encode("ascii")


def _frames(pieces: Iterable[tuple[bytes, bool]], exclude: frozenset[bytes]) -> bytes | None:
    framed: list[bytes] = []
    part, number = _Part(), 0
    for piece, ends in pieces:
        if not part.add(piece):
            return None
        if not ends:
            continue
        if number == 0:
            if not part.is_empty:  # a preamble
                return None
        else:
            frame = part.frame(exclude)
            if frame is None or number > MAX_PARTS:
                return None
            framed.append(frame)
        part, number = _Part(), number + 1
    return b"".join(framed) if number and part.is_end else None


def _cut(chunks: Iterable[bytes], delimiter: bytes) -> Iterator[tuple[bytes, bool]]:
    """Pieces of the body, and whether the delimiter follows them. What may be its beginning is held back.

    Raises:
        _Loose: a delimiter follows a bare CR or LF.
    """
    waiting = b"\r\n"  # the first delimiter stands at the very start, without a line before it
    held_back = len(delimiter) - 1
    seen = waiting
    after_lf, after_cr = delimiter[1:], b"\r" + delimiter[2:]
    for chunk in chunks:
        waiting += chunk
        seen = seen[-held_back:] + chunk
        # From 1 on: one at 0 was whole in the window before, and there is no telling here what precedes it.
        if seen.count(after_lf, 1) != seen.count(delimiter) or after_cr in seen:
            raise _Loose
        start = 0
        while (found := waiting.find(delimiter, start)) >= 0:
            yield waiting[start:found], True
            start = found + len(delimiter)
        keep_from = max(start, len(waiting) - held_back)
        yield waiting[start:keep_from], False
        waiting = waiting[keep_from:]
    yield waiting, False


class _Part:
    """What stands between two delimiters."""

    def __init__(self) -> None:
        self._head = b""
        self._hash = hashlib.sha256()
        self._in_content = False

    @property
    def is_empty(self) -> bool:
        return not self._head and not self._in_content

    @property
    def is_end(self) -> bool:
        """What follows the last delimiter."""
        return not self._in_content and self._head in (b"--", b"--\r\n")

    def add(self, piece: bytes) -> bool:
        """Takes the next piece; False where this is no part of a multipart body."""
        if self._in_content:
            self._hash.update(piece)
            return True
        head, blank_line, content = (self._head + piece).partition(b"\r\n\r\n")
        self._head = head
        if blank_line:
            self._in_content = True
            self._hash.update(content)
        return len(head) <= MAX_HEAD

    def frame(self, exclude: frozenset[bytes]) -> bytes | None:
        """The part behind its lengths, nothing where it does not count; None where it is none."""
        if not self._in_content or not (self._head == b"" or self._head.startswith(b"\r\n")):
            return None
        lines = self._head.split(b"\r\n")[1:]
        if not all(map(_FIELD.fullmatch, lines)):  # folded, or with line breaks that only some parsers see
            return None
        # By name alone: of a field that is repeated, parsers take the first or the last.
        fields = [name + b":" + value for name, value in sorted(map(_normal, lines), key=itemgetter(0))]
        if exclude and not exclude.isdisjoint(_names(fields)):
            return b""
        texts = (*fields, self._hash.digest())
        return b"".join(b"%d:%b" % (len(text), text) for text in texts) + b";"


def _normal(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()


def _names(fields: list[bytes]) -> Iterator[bytes]:
    for field in fields:
        if field.startswith(b"content-disposition:"):
            yield from _NAME.findall(field)
