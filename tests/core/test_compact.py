"""What is written compactly is the JSON that `json` writes."""

from __future__ import annotations

import json
import json.encoder
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idemcore.compact import writer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
@settings(max_examples=30)
@given(value=JSON)
def test_it_is_compact_json(value: object, ascii_only: bool, compiled: bool) -> None:
    """Character for character, with the compiled encoder and without."""
    expected = json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(json.encoder, "c_make_encoder", None)
        assert writer(ascii_only=ascii_only)(value) == expected


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_no_json_is_refused(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set has no JSON form, and what holds itself has no end."""
    if not compiled:
        monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    write = writer(ascii_only=False)
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(TypeError):
        write({"set": {1}})
    with pytest.raises((ValueError, RecursionError)):
        write(endless)


def test_a_lone_surrogate_stands_as_it_is() -> None:
    """A function may have returned one, and gets it back."""
    assert writer(ascii_only=False)(["\ud800"]) == '["\ud800"]'
