"""Reads a Flask request for the guard, before anybody else can eat its body."""

from __future__ import annotations

from flask import Request as FlaskRequest

from idemcore import ConfigurationError, IdempotencyError, ProgramError
from idemcore.http import Request, read_request, request_of


def read(asked: FlaskRequest, limit: int) -> Request | IdempotencyError:
    """The request, or what is wrong with its body: that is said at dispatch, where the request is refused.

    Args:
        asked: as Flask has it.
        limit: of the body, in bytes; Flask's own counts where it is lower.

    Raises:
        ConfigurationError: somebody was here before us and left nothing.
    """
    held, environ = asked.__dict__, asked.environ
    rule = asked.url_rule
    route = rule.rule if rule is not None else ""
    if "stream" in held or "form" in held:
        body = held.get("_cached_data", b"")
        if not body and (asked.content_length or "HTTP_TRANSFER_ENCODING" in environ):
            raise ConfigurationError(
                "The body was consumed before the idempotency layer could read it: decorate the view that "
                "the route is registered with, or call request.get_data() first."
            )
        return request_of(environ, body, route)
    own = asked.max_content_length
    if own is not None and own < limit:
        limit = own
    try:
        return read_request(environ, limit, route)
    except ProgramError:
        raise
    except IdempotencyError as error:
        return error
