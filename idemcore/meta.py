"""Writes what is kept beside a body as JSON, without white space, and reads it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from idemcore.compact import scan, writer

DEEPEST: Final = 100
"""Levels of nesting: what was written with a whole stack free has to be read with little of it left."""

_write: Final = writer(ascii_only=True)


def encode_meta(meta: Mapping[str, object]) -> bytes:
    """The JSON text.

    Raises:
        TypeError: something in it has no JSON form.
        ValueError: it holds itself, or has more than `DEEPEST` levels.
    """
    try:
        text = _write(meta)
    except RecursionError:
        raise ValueError("it is nested without an end") from None
    # Most have not that many brackets in all, and those that have are looked at.
    if text.count("{") + text.count("[") > DEEPEST and _is_deeper(meta):
        raise ValueError(f"it has more than {DEEPEST} levels")
    return text.encode()


def _is_deeper(meta: Mapping[str, object]) -> bool:
    level: list[object] = [meta]
    for _ in range(DEEPEST):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, (list, tuple)):
                inner += value
        level = inner
    return any(isinstance(value, (dict, list, tuple)) for value in level)


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
