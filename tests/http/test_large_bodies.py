"""A hundred megabytes pass by and are never held; what has to be whole is bounded by the limit."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from idemcore import Canonicalizer
from idemcore.http.cgi import read_request
from idemcore.http.packed import unpacked
from idemcore.http.request import request_fingerprinter
from idemcore.http.spool import Spool

pytestmark = pytest.mark.slow

SIZE = 100 << 20
LIMIT = 200 << 20
A_FEW_CHUNKS = 4 << 20  # bytes: what stays in memory is a mebibyte at most, and the pieces on their way
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="film.mp4"\r\n\r\n'
TAIL = b"\r\n--b--\r\n"
BLOCK = bytes(range(251)) * 261


class Upload:
    """An input stream that makes its bytes when they are read."""

    def __init__(self, pieces: Iterator[bytes], length: int) -> None:
        self._pieces = pieces
        self._rest = b""
        self.length = length

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


def content() -> Iterator[bytes]:
    for _ in range(SIZE // len(BLOCK)):
        yield BLOCK


def raw() -> Upload:
    return Upload(content(), SIZE // len(BLOCK) * len(BLOCK))


def multipart() -> Upload:
    def pieces() -> Iterator[bytes]:
        yield HEAD
        yield from content()
        yield TAIL

    return Upload(pieces(), len(HEAD) + SIZE // len(BLOCK) * len(BLOCK) + len(TAIL))


def packed(upload: Upload, level: int) -> Upload:
    """The upload in gzip, which is small, for its blocks are alike."""
    packer = zlib.compressobj(level, wbits=31)
    body = b"".join(packer.compress(piece) for piece in upload._pieces) + packer.flush()
    return Upload(iter([body]), len(body))


def peak_of(call: Callable[[], object]) -> int:
    """The most bytes that the call held at a time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fingerprint(upload: Upload, content_type: str, encoding: str = "", limit: int = LIMIT) -> str:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(upload.length),
        "HTTP_CONTENT_ENCODING": encoding,
        "wsgi.input": upload,
    }
    return request_fingerprinter(Canonicalizer(), read_request(environ, limit), limit).current


@pytest.mark.parametrize(
    ("make", "content_type"),
    [(raw, "video/mp4"), (multipart, "multipart/form-data; boundary=b"), (raw, "multipart/form-data")],
    ids=["raw", "multipart", "compared byte by byte"],
)
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_large_upload_does_not_sit_in_memory(
    make: Callable[[], Upload], content_type: str, encoding: str
) -> None:
    """HTT-05: 100 MB are read, unpacked and compared in the memory of a few chunks."""
    upload = packed(make(), 9) if encoding else make()
    found: list[str] = []
    assert peak_of(lambda: found.append(fingerprint(upload, content_type, encoding))) < A_FEW_CHUNKS
    again = packed(make(), 1) if encoding else make()
    assert fingerprint(again, content_type, encoding) == found[0]


@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream", "multipart/mixed"])
def test_a_bomb_is_unpacked_to_its_limit_and_no_further(content_type: str) -> None:
    """HTT-05: 100 MB of zeros in 100 kB are compared packed, in the memory of a few chunks."""
    bomb = gzip.compress(bytes(SIZE))
    assert len(bomb) < 200_000

    def run() -> None:
        fingerprint(Upload(iter([bomb]), len(bomb)), content_type, "gzip", limit=10 << 20)

    assert peak_of(run) < A_FEW_CHUNKS


@pytest.mark.parametrize("size", [0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_what_is_unpacked_is_what_was_packed(size: int) -> None:
    """Whatever its size, from memory and from disk, up to the very limit."""
    plain = (BLOCK * (size // len(BLOCK) + 1))[:size]
    body = gzip.compress(plain)
    spool = Spool()
    spool.write(body)
    for given in (body, spool):
        found = unpacked("gzip", given, size)
        assert (b"".join(found.chunks()) if isinstance(found, Spool) else found) == plain
        assert isinstance(found, Spool) == (size > 1 << 20)
        assert unpacked("gzip", given, size - 1) is None


def test_a_packed_body_ends_where_its_gzip_ends() -> None:
    """A second member, a byte too many or too few, in another chunk too: compared packed."""
    body = gzip.compress(bytes(1000))
    for wrong in (body + b"x", body[:-1], body * 2, b"", body[:-8], b"x" + body):
        spool = Spool()
        spool.write(wrong)
        assert unpacked("gzip", wrong, 1 << 20) is None
        assert unpacked("gzip", spool, 1 << 20) is None
    padded = gzip.compress(bytes(1), mtime=0)
    name = b"n" * ((1 << 16) - len(padded) - 1)  # a file name that lets the body end with the first chunk
    whole = padded[:3] + b"\x08" + padded[4:10] + name + b"\0" + padded[10:]
    assert len(whole) == 1 << 16
    for tail, expected in ((b"", bytes(1)), (b"x", None)):
        spool = Spool()
        spool.write(whole + tail)
        assert unpacked("gzip", spool, 1 << 20) == expected


@pytest.mark.parametrize("piece", [b"a=%ff&", b"%61=1&b[]=+&", b"a", b"&", b"+", b"%", b"%f", b"%fe"])
def test_a_form_is_held_whole_a_few_times(piece: bytes) -> None:
    """Whatever a client sends, a form takes no more than a few times its size, which the limit bounds."""
    size = 1 << 17
    body = (piece * (size // len(piece) + 1))[:size]
    form = "application/x-www-form-urlencoded"
    assert peak_of(lambda: fingerprint(Upload(iter([body]), size), form)) < 6 * size + (1 << 20)


@pytest.mark.parametrize("fast", [True, False])
def test_a_json_text_is_held_whole_and_its_tree_too(fast: bool) -> None:
    """`json.loads` of the worst takes 35 times their size, in the handler; comparing them takes 50 times."""
    rule = Canonicalizer(fast=fast)
    for piece in (b"[]", b"{}", b"0", b'""', b"1.5", b"0.123456789012345678", b'{"a":[]}', b"[[[1]]]"):
        body = b"[" + b",".join([piece] * ((1 << 17) // (len(piece) + 1))) + b"]"
        assert peak_of(lambda body=body: rule.fingerprint_json(body)) < 60 * len(body), piece
