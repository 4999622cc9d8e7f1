"""Which header fields belong to an operation's result, and which to one exchange only.

What describes one exchange is left out before an answer is stored: connection fields (RFC 9110, section
7.6.1), cookies and challenges, request ids, rate limits and traces, and the CORS answer, which belongs to
the origin that asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeGuard

from idemcore.errors import ConfigurationError

_OF_A_CONNECTION: Final = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
_OF_A_MOMENT: Final = frozenset(
    {
        # one server's
        "date",
        "server",
        "age",
        "via",
        "server-timing",
        # one client's
        "set-cookie",
        "set-cookie2",
        "www-authenticate",
        "proxy-authenticate",
        "authentication-info",
        "proxy-authentication-info",
        "clear-site-data",
        # one request's
        "x-request-id",
        "request-id",
        "x-correlation-id",
        "x-amzn-requestid",
        "x-amz-request-id",
        "x-amzn-trace-id",
        "cf-ray",
        "x-runtime",
        "x-response-time",
        "traceparent",
        "tracestate",
        "traceresponse",
        "b3",
        "x-b3-traceid",
        "x-b3-spanid",
        "x-b3-parentspanid",
        "x-b3-sampled",
        "x-cloud-trace-context",
        # one quota's
        "ratelimit",
        "ratelimit-policy",
    }
)
_PREFIXES: Final = ("access-control-", "x-ratelimit-", "x-rate-limit-", "ratelimit-")
_MAX_VERDICTS: Final = 1000
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*\Z")

_OF_MESSAGES: Final = _OF_A_CONNECTION | {
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "host",
    "location",
    "proxy-authenticate",
    "proxy-authorization",
    "retry-after",
    "server",
    "set-cookie",
    "vary",
    "www-authenticate",
}
"""Fields that say something else, to servers, caches or clients; what we send with refusals is among them."""


def is_free(name: object) -> bool:
    """Whether it is the name of a header that no server, cache or client reads for a purpose of its own."""
    return is_token(name) and name.lower() not in _OF_MESSAGES


def header_name(name: object) -> str:
    """The name, where it is one (RFC 9110, section 5.1).

    Raises:
        ConfigurationError: it is none.
    """
    if not is_token(name):
        raise ConfigurationError(f"{name!r} is no name of a header.")
    return name


def is_token(text: object) -> TypeGuard[str]:
    """Whether it is a token, as names of headers and methods are (RFC 9110, section 5.6.2)."""
    return isinstance(text, str) and _TOKEN.match(text) is not None


def is_field(field: object) -> bool:
    """Whether it is a name and a value that can be sent (RFC 9110, sections 5.1 and 5.5)."""
    return (
        isinstance(field, (tuple, list))
        and len(field) == 2
        and is_token(field[0])
        and isinstance(field[1], str)
        and _VALUE.match(field[1]) is not None
    )


def can_be_sent(fields: Collection[tuple[str, str]]) -> bool:
    """Whether each of an answer's fields is one (`is_field`); looked at together, for this is on every way."""
    names = [name for name, _ in fields]
    values = "".join([value for _, value in fields])
    if not names:
        return True
    if not ((values.isascii() and values.isprintable()) or _VALUE.match(values)):
        return False
    return "" not in names and _TOKEN.match("".join(names)) is not None


class HeaderFilter:
    """Tells what is kept of an answer's header fields.

    Args:
        keep: names that are kept although they are not by default.
        drop: names that are not kept although they are by default.

    Raises:
        ConfigurationError: a name is none, stands on both sides, or names a field of the connection.
    """

    __slots__ = ("_drop", "_keep", "_verdicts")

    def __init__(self, keep: Collection[str] = (), drop: Collection[str] = ()) -> None:
        if isinstance(keep, str) or isinstance(drop, str):
            raise ConfigurationError("keep_headers and drop_headers are collections of names, not one name.")
        self._keep = frozenset(header_name(name).lower() for name in keep)
        self._drop = frozenset(header_name(name).lower() for name in drop)
        if self._keep & self._drop:
            raise ConfigurationError("keep_headers and drop_headers name the same header.")
        if self._keep & _OF_A_CONNECTION:
            raise ConfigurationError("keep_headers names a field that ends with its connection.")
        self._verdicts: dict[str, bool] = {}

    def kept(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """The fields that belong to the operation's result, in order, repeats included."""
        verdicts = self._verdicts
        kept: list[tuple[str, str]] = []
        hops: set[str] = set()
        for field in headers:
            name = field[0]
            verdict = verdicts.get(name)
            if verdict is None:
                verdict = self._judge(name)
            if verdict:
                kept.append(field)
            elif name.lower() == "connection":
                hops.update(hop.strip().lower() for hop in field[1].split(","))
        return [field for field in kept if field[0].lower() not in hops] if hops else kept

    def _judge(self, name: str) -> bool:
        """Whether fields of this name are kept; remembered, for an application has few names."""
        lowered = name.lower()
        if lowered in _OF_A_CONNECTION or lowered in self._drop:
            verdict = False
        else:
            usual = lowered not in _OF_A_MOMENT and not lowered.startswith(_PREFIXES)
            verdict = usual or lowered in self._keep
        if len(self._verdicts) < _MAX_VERDICTS:
            self._verdicts[name] = verdict
        return verdict
