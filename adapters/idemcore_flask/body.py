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
    route = _route_of(asked)
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


def _route_of(asked: FlaskRequest) -> str:
    """The rule that was matched, behind the host where that had a say in it.

    The host as it was asked for: a rule may stand for many, which nothing else tells apart.
    """
    rule = asked.url_rule
    if rule is None:
        return ""
    by_host = rule.host if rule.map is not None and rule.map.host_matching else rule.subdomain
    return f"{asked.host.lower()}{rule.rule}" if by_host else rule.rule
