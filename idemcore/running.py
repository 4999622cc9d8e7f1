"""One call under an attempt: runs it and records what it came to, or gives a kept outcome back as its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, NoReturn, TypeVar

from idemcore.attempt import Attempt
from idemcore.codec import Codec
from idemcore.errors import ConfigurationError, IdempotencyError, RecordUnreadable
from idemcore.policy import Policy
from idemcore.raised import decode_exception
from idemcore.record import Outcome
from idemcore.unfinished import close_coroutine, is_awaited, is_iterator

T = TypeVar("T")

TOO_DEEP: Final = (
    "What is kept is whole, but nested deeper than the stack of this call has room to read: ask for it from a "
    "call that is nested less."
)


class Result(NamedTuple, Generic[T]):
    """What a call came to.

    Attributes:
        value: of the call, or the kept one.
        replayed: whether it is the kept one.
        completed_at: of a replay, when the outcome was recorded.
    """

    value: T
    replayed: bool
    completed_at: datetime | None = None

    def __repr__(self) -> str:
        # The value is the caller's data.
        return f"Result(replayed={self.replayed}, completed_at={self.completed_at})"


def run_once(
    attempt: Attempt, codec: Codec[T], policy: Policy, function: Callable[..., T], /, *args: Any, **named: Any
) -> Result[T]:
    """Calls `function` under the attempt, and records what it came to; what it raises is raised.

    Raises:
        ConfigurationError: it returned what is awaited, or an iterator that the codec does not take. Whatever
            it did before that is done, so the outcome is left unknown and nothing runs again by itself.
    """
    with attempt:
        value = function(*args, **named)
        if attempt.settled:
            return Result(value, replayed=False)
        if is_awaited(value):
            _refuse(attempt, value)
        try:
            body = codec.encode(value)
        except BaseException as error:  # the work is done, so whatever stops this must not free the key
            if isinstance(error, Exception) and is_iterator(value):
                _refuse(attempt, value)
            winner = attempt.tombstone("not_encodable")
            if not isinstance(error, Exception):
                raise
        else:
            winner = attempt.complete(body)
    if winner is not None:  # this attempt was late, and another one's outcome stands
        return replayed(winner.outcome, codec, policy)
    return tuple.__new__(Result, (value, False, None))  # as below


def _refuse(attempt: Attempt, value: object) -> NoReturn:
    close_coroutine(value)
    attempt.unknown("returned_unfinished")
    raise ConfigurationError(
        f"The function returned a {type(value).__name__}: part of its work may be still to come or under way "
        "elsewhere, and part is done, so this call waits for an operator. Return the result itself: await in "
        "an async function around it and protect that with `with idem.begin(…)`, run the coroutine by "
        "asyncio.run(…), wait for the future, or make a list of what is iterated.",
        key_digest=attempt.identity.digest,
    ) from None


def replayed(outcome: Outcome, codec: Codec[T], policy: Policy) -> Result[T]:
    """The outcome of an earlier call as that of this one; what that one raised is raised again."""
    if outcome.kind == "raised":
        raise decode_exception(outcome.body, policy.keep)
    if outcome.kind != "returned":
        raise RecordUnreadable("The record under this key was not made by a function.")
    try:
        value = codec.decode(outcome.body)
    except IdempotencyError:
        raise
    except RecursionError as error:
        raise RecordUnreadable(TOO_DEEP) from error
    except Exception as error:  # else the caller would take it for an exception of the function's
        raise RecordUnreadable("The codec cannot read the kept result; look at the record.") from error
    # As Result(…) makes it, but for a call of Python's own: this is on the way of every replay.
    return tuple.__new__(Result, (value, True, outcome.completed_at))
