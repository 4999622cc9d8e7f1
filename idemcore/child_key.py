"""Keys for providers: made of the identity and a name alone, so every attempt sends the same one."""

from __future__ import annotations

import hashlib

from idemcore.errors import ConfigurationError
from idemcore.identity import Identity

_DOMAIN = b"idemcore child key 1"


def child_key(identity: Identity, name: str) -> bytes:
    """Sixteen bytes for the call `name` within the operation `identity`, shaped as a version 8 UUID.

    Neither token, attempt nor fingerprint enters, which is what keeps it stable. Parts are framed by
    length, so no two (identity, name) pairs spell the same input. The layout is RFC 9562, section 5.8.
    """
    if not isinstance(name, str) or not name:
        raise ConfigurationError("A child key needs a name, such as 'charge': one for each provider call.")
    digest = hashlib.sha256(_DOMAIN)
    for part in (*identity, name):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    raw = bytearray(digest.digest()[:16])
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    return bytes(raw)
