"""Which answers are kept: rules that look at an answer's head and say whether it is final."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from idemcore.errors import ConfigurationError
from idemcore.http.body import number_of

_BODILESS: Final = ("1", "204", "304")


class AnswerHead(NamedTuple):
    """What a `keep` rule sees of an answer: its body may be long, streamed, or not there yet.

    Attributes:
        status_text: what stands in the status line, such as ``"201 CREATED"``.
        headers: names and values, in order.
    """

    status_text: str
    headers: Sequence[tuple[str, str]]

    @property
    def status(self) -> int:
        """The status code, such as 201."""
        return int(self.status_text[:3])

    @property
    def bodiless(self) -> bool:
        """Whether its status says that no body follows (RFC 9110, section 6.4.1)."""
        return self.status_text.startswith(_BODILESS)

    @property
    def announced_size(self) -> int | None:
        """Its Content-Length; None where it has none that is a number (RFC 9110, section 8.6)."""
        for name, value in self.headers:
            if name.lower() == "content-length" and value.isascii() and value.isdecimal():
                return number_of(value)
        return None


Keep: TypeAlias = Callable[[AnswerHead], bool]
"""Says whether an answer is the operation's final one and therefore kept.

What it says no to is settled by its status: a 4xx frees the key, a 5xx lets the same request run again, and of
anything else it is recorded that the work is done, without the answer.
"""

_NOT_FINAL: Final = frozenset((401, 408, 409, 425, 429))


def successes(answer: AnswerHead) -> bool:
    """Keeps 2xx and 3xx: a refusal frees the key, so that a corrected request may use it. The default."""
    return 200 <= int(answer.status_text[:3]) < 400


def successes_and(*statuses: int) -> Keep:
    """Keeps 2xx, 3xx and these, such as ``successes_and(402)``: a declined card is final, a typing error not.

    Args:
        statuses: one or more of 400 to 599.

    Raises:
        ConfigurationError: there is none, or one is no such status.
    """
    for status in statuses:
        if type(status) is not int or not 400 <= status <= 599:
            raise ConfigurationError(f"successes_and takes statuses of 400 to 599, not {status!r}.")
    if not statuses:
        raise ConfigurationError("successes_and takes a status, such as 402; without any it is successes.")
    also = frozenset(statuses)
    return lambda answer: successes(answer) or answer.status in also


def final_answers(answer: AnswerHead) -> bool:
    """Keeps 2xx to 4xx, less 401, 408, 409, 425 and 429, which describe the moment and not the operation."""
    return 200 <= answer.status < 500 and answer.status not in _NOT_FINAL


def everything(answer: AnswerHead) -> bool:
    """Keeps every answer, a 500 included."""
    return answer.status >= 200
