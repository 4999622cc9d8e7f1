"""The key header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idemcore.errors import KeyInvalid, KeyMissing
from idemcore.http.key import MAX_KEY_LENGTH, parse_key

VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=MAX_KEY_LENGTH)


def quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(VISIBLE)
def test_a_quoted_key_comes_back_as_it_is(key: str) -> None:
    """KEY-08: every visible ASCII text survives quoting (RFC 9651, section 4.1.6)."""
    assert parse_key(quoted(key)) == key
    assert parse_key(f" \t{quoted(key)} ") == key


@given(VISIBLE)
def test_a_bare_key_is_the_quoted_one_or_is_refused(key: str) -> None:
    """KEY-08: both forms name one key; what a bare value cannot say without doubt is refused."""
    if set(key) & set(',;"'):
        with pytest.raises(KeyInvalid):
            parse_key(key + "x")
    else:
        assert parse_key(key) == parse_key(quoted(key)) == key


@given(st.text(max_size=300))
def test_no_text_gets_through_that_is_no_key(text: str) -> None:
    """KEY-07: whatever comes, a key is 1 to 255 visible ASCII characters, or the client is told."""
    try:
        key = parse_key(text)
    except KeyInvalid:
        return
    assert 1 <= len(key) <= MAX_KEY_LENGTH
    assert all("!" <= char <= "~" for char in key)


@pytest.mark.parametrize("key", ["secret,", "secret;a", '"secret', "secret\n", "secret" * 50])
def test_a_refusal_does_not_repeat_the_key(key: str) -> None:
    """SEC: what a client sent wrongly may still be a key of somebody's."""
    with pytest.raises(KeyInvalid) as refused:
        parse_key(key)
    assert "secret" not in str(refused.value)
    assert refused.value.status_hint == 400


def test_the_message_names_the_header() -> None:
    """A client learns which header it is about."""
    with pytest.raises(KeyMissing, match="X-Key"):
        parse_key(None, "X-Key")
    with pytest.raises(KeyInvalid, match="X-Key"):
        parse_key("", "X-Key")
