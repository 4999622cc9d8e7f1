"""Compact JSON, past what `json` does around its compiled parts at each call: that takes longer than they do.

`json.JSONEncoder.encode` makes its compiled encoder anew for each value that is no text; here it is made once.
Where there is no compiled one, `encode` it is. `json.loads` asks four questions before it scans.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any, Final

_decoder: Any = json.JSONDecoder()
scan: Final[Callable[[str, int], tuple[Any, int]]] = _decoder.scan_once
"""Reads one JSON value from a place in a text on; gives it and where it ends.

It raises StopIteration, ValueError or RecursionError where there is none.
"""


def writer(*, ascii_only: bool) -> Callable[[object], str]:
    """A function that gives the JSON text of a value, without white space.

    It raises TypeError where something has no JSON form, RecursionError or ValueError where it holds itself.

    Args:
        ascii_only: whether all else is escaped; if not, text stands as it is, a lone surrogate too.
    """
    plain = json.JSONEncoder(separators=(",", ":"), ensure_ascii=ascii_only)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    quoted: Callable[[str], str] = (
        json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    )
    # As JSONEncoder.iterencode has it, but for the first: no note is taken of what was met, so a circle ends
    # at the limit of recursion.
    compiled = make(None, plain.default, quoted, None, ":", ",", False, False, True)

    def write(value: object) -> str:
        return quoted(value) if type(value) is str else "".join(compiled(value, 0))

    return write
