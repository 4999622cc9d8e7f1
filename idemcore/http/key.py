"""Reads the key from its header: a quoted structured-field string or the bare value, both the same key.

Anything else is refused before the store is asked. The header draft defines the value as a string of
RFC 9651, section 3.3.3; most clients in the field send the bare value.
"""

from __future__ import annotations

import re
from typing import Final

from idemcore.errors import KeyInvalid, KeyMissing

MAX_KEY_LENGTH: Final = 255
_BARE: Final = re.compile(r"[!#-+\--:<-~]{1,255}\Z")
"""Visible ASCII without comma, semicolon and double quote: no form of the header can mean anything else."""


def parse_key(value: str | None, header: str = "Idempotency-Key") -> str:
    """The key that a header value names: 1 to 255 visible ASCII characters.

    Args:
        value: of the header; None where it was not sent. Servers join repeated headers with a comma,
            which is refused: two keys name no one operation.
        header: its name, for the messages.

    Raises:
        KeyMissing: the header was not sent.
        KeyInvalid: it is empty, too long, repeated, carries parameters or other characters.
    """
    if value is None:
        raise KeyMissing(
            f"This request needs the header {header}: send a value that is unique to this operation, such "
            "as a UUID, and the same one on every retry."
        )
    if _BARE.match(value):
        return value
    text = value.strip(" \t")
    key = _unquote(text, header) if text.startswith('"') else text
    if not key:
        raise KeyInvalid(f"The header {header} is empty; send a value that is unique to this operation.")
    if len(key) > MAX_KEY_LENGTH:
        raise KeyInvalid(f"The header {header} is longer than {MAX_KEY_LENGTH} characters.")
    if not all("!" <= char <= "~" for char in key):
        raise KeyInvalid(f"The header {header} may hold visible ASCII characters only.")
    if key is text and any(char in ',;"' for char in key):
        raise KeyInvalid(
            f"The header {header} is sent once, with one value and no parameters; put a value that contains "
            "a comma, a semicolon or a quote into double quotes."
        )
    return key


def _unquote(text: str, header: str) -> str:
    """Decodes a string of RFC 9651, section 4.2.5: a backslash stands before a quote or a backslash only."""
    chars: list[str] = []
    rest = iter(text[1:])
    for char in rest:
        if char == '"':
            if next(rest, None) is not None:
                raise KeyInvalid(f"The header {header} has something after the quoted value; send one value.")
            return "".join(chars)
        if char == "\\":
            char = next(rest, "")
            if char not in ('"', "\\"):
                break
        chars.append(char)
    raise KeyInvalid(f"The header {header} holds a quoted value that is not closed or wrongly escaped.")
