"""Reading a body: never past its end, never more than the limit."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore.errors import LengthRequired, RequestIncomplete, RequestTooLarge
from idemcore.http.body import body_length, read_body


class Dripping:
    """A stream that gives as little as it likes and counts what it was asked for."""

    def __init__(self, content: bytes, drops: list[int]) -> None:
        self.stream = io.BytesIO(content)
        self.drops = iter(drops)

    def read(self, size: int) -> bytes:
        assert size > 0
        return self.stream.read(max(1, min(size, next(self.drops, size))))


@given(st.binary(max_size=200), st.binary(max_size=50), st.lists(st.integers(1, 40)))
def test_a_body_is_read_to_its_end_and_no_further(body: bytes, next_request: bytes, drops: list[int]) -> None:
    """However the stream drips, what follows the body is left in it."""
    stream = Dripping(body + next_request, drops)
    assert read_body(stream.read, len(body), 1000) == body
    assert stream.stream.read() == next_request


@given(st.binary(max_size=200), st.lists(st.integers(1, 40)))
def test_a_body_that_ends_itself_is_read_whole(body: bytes, drops: list[int]) -> None:
    """Where the server marks the end, reading stops there."""
    assert read_body(Dripping(body, drops).read, None, 200) == body


@given(st.binary(max_size=100), st.integers(1, 50))
def test_a_short_body_is_refused(body: bytes, missing: int) -> None:
    """A request that broke off is not taken for the request that was meant."""
    with pytest.raises(RequestIncomplete):
        read_body(io.BytesIO(body).read, len(body) + missing, 1000)


def test_the_limit_is_inclusive() -> None:
    """A body of exactly the limit is read; an announced larger one is refused before reading."""
    assert read_body(io.BytesIO(b"x" * 10).read, 10, 10) == b"x" * 10
    assert read_body(io.BytesIO(b"x" * 10).read, None, 10) == b"x" * 10
    untouched = io.BytesIO(b"x" * 11)
    with pytest.raises(RequestTooLarge):
        read_body(untouched.read, 11, 10)
    assert untouched.tell() == 0
    with pytest.raises(RequestTooLarge):
        read_body(io.BytesIO(b"x" * 11).read, None, 10)


@pytest.mark.parametrize(
    ("content_length", "transfer_encoding", "ends_itself", "length"),
    [
        ("5", None, False, 5),
        ("5", "", True, 5),
        ("0", None, False, 0),
        ("007", None, False, 7),
        (None, None, False, 0),
        ("", None, False, 0),
        (None, None, True, None),
        (None, "chunked", True, None),
        ("5", "chunked", True, None),
        ("9" * 5000, None, False, 10**19 - 1),
        ("0" * 5000 + "5", None, False, 5),
    ],
)
def test_where_a_body_ends(
    content_length: str | None, transfer_encoding: str | None, ends_itself: bool, length: int | None
) -> None:
    """HTT-02: by its length, by the server's promise, or there is none."""
    assert body_length(content_length, transfer_encoding, ends_itself=ends_itself) == length


@pytest.mark.parametrize("content_length", ["-1", "+5", "5,5", "0x5", "5.0", "\u0665", " 5", "five"])
def test_a_length_that_is_no_number_is_refused(content_length: str) -> None:
    """RFC 9110, section 8.6: digits and nothing else."""
    with pytest.raises(RequestIncomplete):
        body_length(content_length, None, ends_itself=False)


def test_a_chunked_body_without_an_end_is_refused() -> None:
    """HTT-02: it would be hashed as empty, or read for ever."""
    with pytest.raises(LengthRequired):
        body_length(None, "chunked", ends_itself=False)


def test_a_connection_that_breaks_is_an_incomplete_request() -> None:
    """HTT-02: also where a server finds a malformed chunk; nothing is claimed."""

    def read(size: int) -> bytes:
        raise ConnectionResetError("gone")

    for length in (5, None):
        with pytest.raises(RequestIncomplete) as refused:
            read_body(read, length, 10)
        assert isinstance(refused.value.__cause__, ConnectionResetError)
