r"""What records are called in Redis: a prefix, a slot tag, and the identity.

``idemcore:{57}:scope\0operation\0key`` is a record; ``idemcore:{57}`` is the index of what is open under
the same tag. A cluster keeps what has the same tag on one server, so a script may touch both. The tag
comes from the identity: there are 128, which any number of servers up to a dozen shares out fairly.
"""

from __future__ import annotations

import zlib
from typing import Final

from idemcore.errors import ConfigurationError
from idemcore.identity import Identity

_TAGS: Final = tuple(f"{number:02x}".encode() for number in range(128))
_GLOB: Final = str.maketrans({char: f"\\{char}" for char in "*?[]^-\\"})


class Names:
    """The names of one store.

    Args:
        prefix: of all of them.

    Raises:
        ConfigurationError: the prefix would decide about slots.
    """

    def __init__(self, prefix: str) -> None:
        if "{" in prefix or "}" in prefix:
            raise ConfigurationError("RedisStore(prefix=…) may hold no braces: they would decide about slots.")
        start = prefix.encode()
        self.indexes: Final = tuple(b"%b{%b}" % (start, tag) for tag in _TAGS)
        self.pattern: Final = f"{prefix.translate(_GLOB)}{{[0-7][0-9a-f]}}:*".encode()
        """Of all records, for SCAN."""
        self._identity_at: Final = len(start) + len("{..}:")

    def of(self, identity: Identity) -> tuple[bytes, bytes]:
        """The name of a record, and that of the index beside it."""
        name = "\0".join(identity).encode()
        index = self.indexes[zlib.crc32(name) & 127]
        return b"%b:%b" % (index, name), index

    def index_of(self, name: bytes) -> bytes:
        """The index beside a record of this name."""
        return name[: self._identity_at - 1]

    def identity(self, name: bytes) -> Identity:
        """Whose record has this name; damaged text is shown as well as it can be."""
        parts = name[self._identity_at :].decode("utf-8", "replace").split("\0", 2)
        return Identity(*parts, *[""] * (3 - len(parts)))
