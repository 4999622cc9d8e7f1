"""Everything is hashed in a domain of its own and with its length, so no text can slide into its neighbour.

A digest of a canonical form, one of raw bytes and one of a composed request can never be equal: each
starts with the name of its domain and a NUL, and no domain's name is the beginning of another's.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

CANONICAL = b"idemcore/v1/canonical\0"
RAW = b"idemcore/v1/raw\0"
PARTS = b"idemcore/v1/parts\0"
SECRET = b"idemcore/v1/secret\0"
CONFIG = b"idemcore/v1/config\0"


def digest(domain: bytes, data: bytes, key: bytes | None = None) -> bytes:
    """SHA-256, or HMAC-SHA-256 where there is a key, of `data` in `domain`; 32 bytes."""
    if key is None:
        return sha256(domain + data).digest()
    return hmac.digest(key, domain + data, "sha256")


def framed(parts: Iterable[bytes]) -> bytes:
    """The parts one after the other, each behind its length in 8 bytes: two lists never give one text."""
    return b"".join([len(part).to_bytes(8, "big") + part for part in parts])
