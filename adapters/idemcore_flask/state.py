"""What one app knows of one request; it hangs on the request object.

Not in its environment: an app that calls another with it would have its claim settled by the other's answer.
Flask's proxies are followed once in each place: most requests carry no key, and pay for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from flask import Flask, current_app, request
from flask import Request as FlaskRequest

from idemcore import IdempotencyError
from idemcore.http import HTTPAnswer, Request, Run

if TYPE_CHECKING:
    from werkzeug.local import LocalProxy

STATE: Final = "idemcore_state"


class State:
    """Of a request that has a key, or needs one.

    Attributes:
        request: as the first hook read it, or what is wrong with it.
        run: under way, or settled.
        replay: given in the view's stead, with the name of the header that marks it.
    """

    __slots__ = ("replay", "request", "run")

    def __init__(self, read: Request | IdempotencyError | None = None) -> None:
        self.request = read
        self.run: Run | None = None
        self.replay: tuple[HTTPAnswer, str] | None = None


def state_of(asked: FlaskRequest) -> State | None:
    """The state of a request; None while nothing is known of it."""
    state: State | None = asked.__dict__.get(STATE)
    return state


this_app: Final = cast("LocalProxy[Flask]", current_app)._get_current_object
"""The app itself, behind Flask's proxy."""

this_request: Final = cast("LocalProxy[FlaskRequest]", request)._get_current_object
"""The request itself, behind Flask's proxy."""
