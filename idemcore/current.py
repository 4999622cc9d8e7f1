"""Which attempt the calling code runs in: one for each context, so threads and tasks do not meet."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Final, TypeVar, overload

from idemcore.errors import ConfigurationError

if TYPE_CHECKING:
    from idemcore.attempt import Attempt
    from idemcore.identity import Identity

D = TypeVar("D")
_RAISE: Final = object()
CURRENT: Final[ContextVar[Attempt | None]] = ContextVar("idemcore_attempt")


@overload
def current_attempt() -> Attempt: ...
@overload
def current_attempt(default: D) -> Attempt | D: ...
def current_attempt(default: object = _RAISE) -> object:
    """The attempt that the calling code runs in.

    Args:
        default: given back where there is none: outside of a protected operation, where protection is
            optional and no key was sent, where it is switched off, or where the store is down and
            `fail_open` lets the request run without. Left out, that is an error.

    Raises:
        ConfigurationError: there is none, and no default.
    """
    attempt = CURRENT.get(None)
    if attempt is not None:
        return attempt
    if default is _RAISE:
        raise ConfigurationError(
            "There is no current attempt: call this inside a protected view, function or `with attempt`, or "
            "say current_attempt(None) where protection is optional or may be switched off. A thread that is "
            "started in there, a pool's too, has none: take the attempt before, and hand it over, or start the "
            "thread's work by contextvars.copy_context().run(…)."
        )
    return default


def leave(attempt: Attempt, entered: Token[Attempt | None]) -> None:
    """The calling code runs in `attempt` no more, whichever context it was entered in.

    A generator that a thread pool drives runs each of its steps in a copy of a context, and may be closed in
    another task than it was begun in. What holds in the context of the beginning is out of reach from there.
    """
    try:
        CURRENT.reset(entered)
    except ValueError:  # of another context
        if CURRENT.get(None) is attempt:
            CURRENT.set(attempt.outer)


def runs_within(identity: Identity) -> bool:
    """Whether the calling code is part of a run of this operation, or of one that such a run began.

    A run that calls over the network cannot be told, nor a thread that was started without its context.
    """
    running = CURRENT.get(None)
    while running is not None:
        if running.identity == identity:
            return True
        running = running.outer
    return False
