"""Writes what is kept beside a body as JSON, without white space, and reads it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from idemcore.compact import scan, writer

_write: Final = writer(ascii_only=True)


def encode_meta(meta: Mapping[str, object]) -> bytes:
    """The JSON text.

    Raises:
        TypeError: something in it has no JSON form.
        ValueError: it holds itself.
    """
    try:
        return _write(meta).encode()
    except RecursionError:
        raise ValueError("it is nested without an end") from None


def decode_meta(text: bytes) -> dict[str, object] | None:
    """What `encode_meta` has written, and any other JSON object; None where it is none."""
    meta, end = None, -1
    try:
        meta, end = scan(text.decode("ascii"), 0)
    except (StopIteration, ValueError):
        pass  # not as we write it
    if end != len(text):
        try:
            meta = json.loads(text)
        except ValueError:
            return None
    return meta if isinstance(meta, dict) else None
