"""What is kept beside a body is read as `json` reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idemcore import meta

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_what_is_no_json_is_refused() -> None:
    """A set has no JSON form, and what holds itself has no end."""
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(TypeError):
        meta.encode_meta({"set": {1}})
    with pytest.raises(ValueError, match="without an end"):
        meta.encode_meta(endless)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), JSON))
def test_it_is_read_as_it_was_written(value: dict[str, object]) -> None:
    """By whoever wrote it: an operator's tool may indent, and leave letters as they are."""
    for text in (
        meta.encode_meta(value),
        json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    ):
        assert repr(meta.decode_meta(text)) == repr(value)
    assert repr(meta.decode_meta(b" " + meta.encode_meta(value) + b"\n")) == repr(value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"1", b"{}x", b"{} {}", b"\xff", b'{"a":"\xff"}', b"nul"])
def test_what_is_no_object_is_none(text: bytes) -> None:
    """A damaged record is found, whatever has become of it."""
    assert meta.decode_meta(text) is None
