"""Which answers are kept: rules that look at an answer's head and say whether it is final."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from idemcore.http.body import number_of

_BODILESS: Final = ("1", "204", "304")


class AnswerHead(NamedTuple):
    """What a `keep` rule sees of an answer: its body may be long, streamed, or not there yet.

    Attributes:
        status: the status line's text, such as ``"201 CREATED"``.
        headers: names and values, in order.
    """

    status: str
    headers: Sequence[tuple[str, str]]

    @property
    def code(self) -> int:
        """The status as a number."""
        return int(self.status[:3])

    @property
    def bodiless(self) -> bool:
        """Whether its status says that no body follows (RFC 9110, section 6.4.1)."""
        return self.status.startswith(_BODILESS)

    @property
    def announced_size(self) -> int | None:
        """Its Content-Length; None where it has none that is a number (RFC 9110, section 8.6)."""
        for name, value in self.headers:
            if name.lower() == "content-length" and value.isascii() and value.isdecimal():
                return number_of(value)
        return None


Keep: TypeAlias = Callable[[AnswerHead], bool]
"""Says whether an answer is the operation's final one and therefore kept."""

_NOT_FINAL: Final = frozenset((401, 408, 409, 425, 429))


def successes(answer: AnswerHead) -> bool:
    """Keeps 2xx and 3xx: a refusal frees the key, so that a corrected request may use it. The default."""
    return 200 <= int(answer.status[:3]) < 400


def final_answers(answer: AnswerHead) -> bool:
    """Keeps 2xx to 4xx, less 401, 408, 409, 425 and 429, which describe the moment and not the operation."""
    return 200 <= answer.code < 500 and answer.code not in _NOT_FINAL


def everything(answer: AnswerHead) -> bool:
    """Keeps every answer, a 500 included."""
    return answer.code >= 200
