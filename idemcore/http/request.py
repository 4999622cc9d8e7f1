"""What makes two requests the same: method, path, query, media type and body, each framed by its length."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from idemcore.canonical import Canonicalizer, Fingerprinter
from idemcore.http.fingerprint_parts import body_part, media_type_of, query_part
from idemcore.http.spool import Spool, whole

_DOMAIN: Final = "http"


class Request(NamedTuple):
    """A request as an adapter read it.

    Attributes:
        method: in upper case.
        path: as the application sees it, mount point included.
        query: the raw query string, without the question mark.
        content_type: the header's value, empty where it was not sent.
        content: the body, all of it; a large one in a temporary file. `body` has its bytes in any case.
        content_encoding: the header's value, likewise.
        accept_encoding: which codings the client reads; no part of what is compared.
        route: what the path was matched by; the path itself where no router is known.
    """

    method: str
    path: str
    query: str
    content_type: str
    content: bytes | Spool
    content_encoding: str = ""
    accept_encoding: str = ""
    route: str = ""

    @property
    def media_type(self) -> str:
        """Type and subtype in lower case; parameters such as charset do not count."""
        return media_type_of(self.content_type)

    @property
    def body(self) -> bytes:
        """The body's bytes."""
        return whole(self.content)

    def json(self) -> Any:
        """The body, parsed.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self.body)

    def __repr__(self) -> str:
        size = len(self.content) if isinstance(self.content, bytes) else self.content.size
        return f"Request({self.method}, body=<{size} bytes>)"


def request_fingerprinter(
    canonicalizer: Canonicalizer, request: Request, max_decoded: int = 10 << 20
) -> Fingerprinter:
    """Compares this request with earlier ones, under today's rule and those that it accepts.

    Args:
        canonicalizer: the rule.
        request: as it was read.
        max_decoded: how many bytes a packed body may have unpacked; a larger one is compared packed.
    """
    method, path, query, content_type, content, content_encoding, _, _ = request
    media_type = media_type_of(content_type)
    return canonicalizer.fingerprinter_parts(
        _DOMAIN,
        (
            method.encode("utf-8", "surrogatepass"),
            path.encode("utf-8", "surrogatepass"),
            query_part(query),
            media_type.encode("utf-8", "surrogatepass"),
            body_part(media_type, content_type, content_encoding, content, max_decoded),
        ),
    )
