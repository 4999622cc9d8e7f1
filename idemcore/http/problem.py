"""Refusals as answers: ``application/problem+json`` (RFC 9457), with what a client may safely do next.

Besides the standard members each has a `code` and a `retry`: ``fix_request``, ``same_key_later``,
``new_key`` (only if a new operation is meant) or ``never``. Nothing of an earlier request is revealed,
and no cache may keep them. An application may render them in its own style; status, Retry-After and
Cache-Control stay.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from math import ceil
from typing import Final, NamedTuple, TypeAlias, cast

from idemcore import errors
from idemcore.errors import ConfigurationError
from idemcore.http.answer import HTTPAnswer
from idemcore.unfinished import close_coroutine

TYPE_PREFIX: Final = "urn:idemcore:problem:"
MEDIA_TYPE: Final = "application/problem+json"
_UNTIL_UPGRADED: Final = 60.0
"""Seconds. A record that a newer program wrote is read once the deployment has reached this process."""

_RETRY: Final[dict[type[errors.IdempotencyError], str]] = {
    errors.FingerprintMismatch: "new_key",
    errors.NotReplayable: "never",
    errors.ReplayForbidden: "never",
    errors.CallerError: "fix_request",
    errors.TryLater: "same_key_later",
    errors.OutcomeUnknown: "never",
    errors.Incomparable: "never",
    errors.RecordUnreadable: "same_key_later",
}
_STORE_DETAIL: Final = (
    "It cannot be told right now whether this request was done before, so it was not run. Send the same "
    "request again, with the same key."
)
_TITLES: Final[dict[str, str]] = {
    "idempotency_key_missing": "Idempotency key missing",
    "idempotency_key_invalid": "Idempotency key invalid",
    "idempotency_scope_missing": "Nobody to keep the answer for",
    "idempotency_key_reuse": "Idempotency key used for a different request",
    "request_too_large": "Request body too large",
    "request_incomplete": "Request body incomplete",
    "request_length_required": "Content-Length required",
    "request_in_progress": "Request in progress",
    "replay_forbidden": "Kept answer refused",
    "response_not_replayable": "Done, answer not kept",
    "fingerprint_rule_unknown": "Request cannot be compared",
    "outcome_unknown": "Outcome unknown",
    "store_unavailable": "Idempotency store unavailable",
    "record_unreadable": "Idempotency record unreadable",
}
CODES: Final = tuple(_TITLES)
"""The codes of all refusals that a client may meet."""


class Problem(NamedTuple):
    """A refusal, as it is rendered.

    Attributes:
        type: a URI for the case.
        title: of the case, always the same.
        status: of the answer.
        detail: what to do, in a sentence or two.
        code: stable name of the case.
        retry: ``fix_request``, ``same_key_later``, ``new_key`` or ``never``.
        retry_after: seconds, where trying again later may help.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    retry: str
    retry_after: int | None = None


Render: TypeAlias = Callable[[Problem], tuple[str, bytes]]
"""Renders a refusal in an application's own style: returns a media type and the body."""


class Refusals:
    """Makes answers of refusals.

    Args:
        statuses: status by code, where it is to be another than usual; 400 to 599.
        types: what the types' URIs begin with; the code follows.
        render: makes the body, instead of problem+json.

    Raises:
        ConfigurationError: an unknown code, or a status that is no refusal.
    """

    def __init__(
        self, statuses: Mapping[str, int] | None = None, types: str = TYPE_PREFIX, render: Render | None = None
    ) -> None:
        self._statuses: Final = dict(statuses or {})
        self._types: Final = types
        self._render: Final = render if render is not None else as_problem_json
        for code, status in self._statuses.items():
            if code not in _TITLES:
                raise ConfigurationError(f"statuses names {code!r}; the codes are: {', '.join(CODES)}.")
            if not isinstance(status, int) or not 400 <= status <= 599:
                raise ConfigurationError(f"statuses gives {code} the status {status!r}; it is 400 to 599.")

    def problem(self, error: errors.IdempotencyError) -> Problem:
        """What a client is told of a refusal.

        Raises:
            ProgramError: handed in and raised again; it is the server's fault and no client's business.
        """
        if isinstance(error, errors.ProgramError):
            raise error
        retry_after: int | None = None
        if isinstance(error, errors.TryLater):
            retry_after = ceil(error.retry_after)
        elif isinstance(error, errors.RecordUnreadable):
            retry_after = ceil(_UNTIL_UPGRADED)
        return Problem(
            self._types + error.code,
            _TITLES.get(error.code, "Request refused"),
            self._statuses.get(error.code, error.status_hint),
            self._detail(error),
            error.code,
            next((_RETRY[cls] for cls in type(error).__mro__ if cls in _RETRY), "never"),
            retry_after,
        )

    @staticmethod
    def _detail(error: errors.IdempotencyError) -> str:
        if isinstance(error, errors.StoreUnavailable):
            return _STORE_DETAIL  # what is wrong with which database is no stranger's business
        return str(error.args[0])  # the message without the key's digest, which is for logs

    def answer(self, error: errors.IdempotencyError) -> HTTPAnswer:
        """The answer that tells a client of a refusal; raises as `problem` does."""
        problem = self.problem(error)
        try:
            rendered: object = self._render(problem)
            close_coroutine(rendered)
            media_type, body = cast("tuple[str, bytes]", rendered)
            if not isinstance(media_type, str) or not isinstance(body, bytes):
                raise TypeError("render returns a media type and bytes")
        except Exception as raised:  # by its class alone: the text may quote what was rendered
            logging.getLogger("idemcore").error(
                "render raised %s; the refusal is told as problem+json", type(raised).__name__
            )
            media_type, body = as_problem_json(problem)
        headers = [
            ("Content-Type", media_type),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
        ]
        if problem.retry_after is not None:
            headers.append(("Retry-After", str(problem.retry_after)))
        return HTTPAnswer(f"{problem.status} {_phrase(problem.status)}", headers, body)


def as_problem_json(problem: Problem) -> tuple[str, bytes]:
    """The media type and body of RFC 9457."""
    members = {name: value for name, value in problem._asdict().items() if name != "retry_after"}
    return MEDIA_TYPE, json.dumps(members).encode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # a status of one's own
        return "Refused"
