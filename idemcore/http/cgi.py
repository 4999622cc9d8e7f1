"""Reads a request out of CGI meta-variables (RFC 3875), in which servers hand it to applications.

The body is read whole, once, and put back, so that whatever comes afterwards finds it untouched.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from idemcore.http.body import body_length, read_body
from idemcore.http.request import Request
from idemcore.http.spool import Spool


def header_variable(header: str) -> str:
    """The variable that a request header arrives in: ``HTTP_IDEMPOTENCY_KEY``."""
    return "HTTP_" + header.upper().replace("-", "_")


def method_of(environ: Mapping[str, Any]) -> str:
    """The method as frameworks see it, who write it in upper case whatever the client wrote."""
    method: str = environ["REQUEST_METHOD"]
    return method.upper()


def read_request(environ: dict[str, Any], limit: int, route: str = "") -> Request:
    """The request; its body in the environment is replaced by an equal one that can be read again.

    Args:
        environ: the meta-variables, with the body under ``wsgi.input``.
        limit: of the body, in bytes.
        route: see `Request`.

    Raises:
        RequestTooLarge: the body is larger than `limit`.
        RequestIncomplete: it is shorter than announced.
        LengthRequired: its end cannot be found.
    """
    length = body_length(
        environ.get("CONTENT_LENGTH"),
        environ.get("HTTP_TRANSFER_ENCODING"),
        ends_itself=bool(environ.get("wsgi.input_terminated")),
    )
    body = read_body(environ["wsgi.input"].read, length, limit) if length != 0 else b""
    environ["wsgi.input"] = io.BytesIO(body) if isinstance(body, bytes) else body
    if length is None:
        environ["CONTENT_LENGTH"] = str(len(body) if isinstance(body, bytes) else body.size)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
    return request_of(environ, body, route)


def request_of(environ: dict[str, Any], body: bytes | Spool, route: str = "") -> Request:
    """The request around a body that was read already."""
    value = environ.get
    # As Request(…) makes it, but for a call of Python's own: this is on the way of every request.
    return tuple.__new__(
        Request,
        (
            method_of(environ),
            value("SCRIPT_NAME", "") + value("PATH_INFO", ""),
            value("QUERY_STRING", ""),
            value("CONTENT_TYPE") or "",
            body,
            value("HTTP_CONTENT_ENCODING", ""),
            value("HTTP_ACCEPT_ENCODING", ""),
            route,
        ),
    )
