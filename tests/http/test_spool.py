"""Large bodies pass through a temporary file, and mean the same as if they had not."""

from __future__ import annotations

import gc
import io
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore.errors import RequestIncomplete, RequestTooLarge
from idemcore.http.body import read_body
from idemcore.http.cgi import read_request
from idemcore.http.fingerprint_parts import body_part, media_type_of
from idemcore.http.multipart import canonical_multipart
from idemcore.http.spool import SPOOL_FROM, Spool

LARGE = bytes(range(256)) * 4 * 1024 + b"tail"


def spooled(content: bytes) -> Spool:
    spool = Spool()
    spool.write(content)
    spool.rewind()
    return spool


@pytest.mark.parametrize("length", [len(LARGE), None])
def test_a_large_body_goes_to_disk(length: int | None) -> None:
    """Up to a mebibyte stays in memory; what is larger does not, and reads like any input stream."""
    assert isinstance(read_body(io.BytesIO(LARGE).read, SPOOL_FROM, 1 << 30), bytes)
    body = read_body(io.BytesIO(LARGE).read, length, 1 << 30)
    assert isinstance(body, Spool)
    assert body.size == len(LARGE)
    assert body.read() == LARGE
    body.rewind()
    assert (body.read(3), body.readline()) == (LARGE[:3], LARGE[3:11])
    body.rewind()
    lines = LARGE.splitlines(keepends=True)
    assert b"".join(body.readlines()) == LARGE
    body.rewind()
    assert next(iter(body)) == lines[0]
    assert b"".join(body.chunks()) == LARGE
    assert body.read() == LARGE


def test_limits_hold_for_large_bodies_too() -> None:
    """413 and 400 as for small ones."""
    with pytest.raises(RequestTooLarge):
        read_body(io.BytesIO(LARGE).read, None, len(LARGE) - 1)
    with pytest.raises(RequestIncomplete):
        read_body(io.BytesIO(LARGE).read, len(LARGE) + 1, 1 << 30)


def test_the_file_goes_with_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to close it."""
    files: list[Any] = []
    make = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: files.append(make()) or files[-1])
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": str(len(LARGE)),
        "wsgi.input": io.BytesIO(LARGE),
    }
    request = read_request(environ, 1 << 30)
    assert environ["wsgi.input"] is request.content
    assert request.body == LARGE
    assert "1048580 bytes" in repr(request)
    (file,) = files
    assert not file.closed
    del request, environ
    gc.collect()
    assert file.closed


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b",
    ],
)
@pytest.mark.parametrize("encoding", ["", "gzip", "br"])
def test_on_disk_or_in_memory_it_is_the_same_request(content_type: str, encoding: str) -> None:
    """Where a body happened to be held does not count, and it is rewound for the application."""
    import gzip

    from idemcore import Canonicalizer

    rule = Canonicalizer()
    for body in (b'{"a": 1.0}', b"a=1&b=2", b"--b\r\n\r\n\r\nx\r\n--b--\r\n", b"\x00\xff"):
        sent = gzip.compress(body) if encoding == "gzip" else body
        spool = spooled(sent)
        media_type = media_type_of(content_type)
        parts = [body_part(media_type, content_type, encoding, content, 1 << 20) for content in (sent, spool)]
        digests = [part if isinstance(part, bytes) else part.digest(rule) for part in parts]
        assert digests[0] == digests[1]
        assert spool.read() == sent


@given(st.binary(max_size=30), st.lists(st.integers(1, 9), min_size=1))
def test_a_multipart_body_may_be_cut_anywhere(content: bytes, cuts: list[int]) -> None:
    """HTT-05: the delimiter is found across the borders of what was read at a time."""
    head = b'Content-Disposition: form-data; name="a"'
    body = b"--bb\r\n" + head + b"\r\n\r\n" + content + b"\r\n--bb\r\n\r\n\r\n\r\n--b\r\n--bb--\r\n"
    pieces, rest = [], body
    while rest:
        cut = cuts[len(pieces) % len(cuts)]
        pieces.append(rest[:cut])
        rest = rest[cut:]
    kind = "multipart/form-data; boundary=bb"
    whole = canonical_multipart(kind, [body], frozenset())
    assert canonical_multipart(kind, pieces, frozenset()) == whole
    assert whole is not None or b"--bb" in content
