"""One tree of errors, sorted by whose turn it is; no refusal of this library stands outside of it.

`CallerError`: the request must change. `TryLater`: the same call may succeed after `retry_after`
seconds. `OperatorNeeded`: a person has to look. `ProgramError`: the code or its configuration is
wrong. Each class carries a stable `code` and a `status_hint`, the HTTP status that an adapter would
use, so the core can name a status without knowing HTTP. Messages say what to do next and never
contain a key, a scope or a payload; where a key matters they show a digest.
"""

from __future__ import annotations

from typing import ClassVar


class IdempotencyError(Exception):
    """The root of every error of this library.

    Attributes:
        code: stable machine-readable name of the case.
        status_hint: the HTTP status that fits.
        key_digest: `Identity.digest` of what the error is about, or None.
    """

    code: ClassVar[str] = "idempotency_error"
    status_hint: ClassVar[int] = 500

    def __init__(self, message: str = "", *, key_digest: str | None = None) -> None:
        # args holds the message alone, so copy and pickle rebuild the error as cls(message) and then
        # restore the attributes from __dict__, whatever keywords a subclass takes.
        super().__init__(message)
        self.key_digest = key_digest

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} [key #{self.key_digest}]" if self.key_digest else message


class CallerError(IdempotencyError):
    """The caller's turn: sending the same again gives the same answer."""

    code = "idempotency_caller_error"
    status_hint = 400


class KeyMissing(CallerError):
    """A key is required here and none was given, or a part of it is empty."""

    code = "idempotency_key_missing"


class KeyInvalid(CallerError):
    """The key cannot be used: empty, too long, repeated or with characters that are not allowed."""

    code = "idempotency_key_invalid"


class ScopeMissing(CallerError):
    """The scope came out as None or empty; sharing one bucket between strangers is refused."""

    code = "idempotency_scope_missing"


class RequestTooLarge(CallerError):
    """The request's body is larger than what is compared here; nothing was run."""

    code = "request_too_large"
    status_hint = 413


class RequestIncomplete(CallerError):
    """The request's body ended before the length that it announced; nothing was run."""

    code = "request_incomplete"


class LengthRequired(CallerError):
    """The request's body has no end that this server lets us find; nothing was run."""

    code = "request_length_required"
    status_hint = 411


class FingerprintMismatch(CallerError):
    """This key was used before for a different request."""

    code = "idempotency_key_reuse"
    status_hint = 422


class ReplayForbidden(CallerError):
    """The answer is kept, and this caller may not have it (any more)."""

    code = "replay_forbidden"
    status_hint = 403


class NotReplayable(CallerError):
    """The operation is done, but its answer was not kept.

    Attributes:
        reason: why the answer is not there, for example ``too_large``.
        final: whether it never will be. Else the work is committed (`Attempt.join`) and its run has lost its
            lease before it recorded the answer: most likely it has died, and only if it lives, or an operator
            gives it (`Engine.resolve`), may the answer still come. While that lease stands the error is
            `InProgress`.
    """

    code = "response_not_replayable"
    status_hint = 422

    def __init__(
        self, message: str = "", *, key_digest: str | None = None, reason: str = "", final: bool = True
    ) -> None:
        super().__init__(message, key_digest=key_digest)
        self.reason = reason
        self.final = final


class RecordedFailure(CallerError):
    """The operation ended with an exception that is kept, and that cannot be rebuilt as what it was.

    Raised in its place, in each replay. Its text quotes the exception's own.

    Attributes:
        type_name: the class that was raised, as ``module:qualified.name``.
        message: what ``str()`` gave of it.
    """

    code = "recorded_failure"
    status_hint = 422

    def __init__(
        self, text: str = "", *, key_digest: str | None = None, type_name: str = "", message: str = ""
    ) -> None:
        super().__init__(text, key_digest=key_digest)
        self.type_name = type_name
        self.message = message


class TryLater(IdempotencyError):
    """The same call may succeed later.

    Attributes:
        retry_after: seconds to wait before the next try.
    """

    code = "idempotency_try_later"
    status_hint = 503

    def __init__(self, message: str = "", *, key_digest: str | None = None, retry_after: float = 1.0) -> None:
        super().__init__(message, key_digest=key_digest)
        self.retry_after = retry_after


class InProgress(TryLater):
    """Another run of this operation holds the claim.

    Attributes:
        for_itself: whether that is the run, or one around it, that this very call comes out of: it cannot
            end before this call has, so waiting for it is in vain.
    """

    code = "request_in_progress"
    status_hint = 409

    def __init__(
        self,
        message: str = "",
        *,
        key_digest: str | None = None,
        retry_after: float = 1.0,
        for_itself: bool = False,
    ) -> None:
        super().__init__(message, key_digest=key_digest, retry_after=retry_after)
        self.for_itself = for_itself


class StoreUnavailable(TryLater):
    """The store did not answer, so nothing was run without its protection; the cause is chained.

    Attributes:
        nothing_known: whether nothing at all is known of the operation: `Engine.begin` has seen no record of
            it, and no run of it is under way or still to be recorded in this engine. Whoever would rather run
            without protection may do so then only.
    """

    code = "store_unavailable"
    nothing_known: bool = False


class StoreFull(StoreUnavailable):
    """The store has no room for another record and drops none that still protects an operation."""


class OperatorNeeded(IdempotencyError):
    """No program may decide this one; a person looks and settles it."""

    code = "idempotency_operator_needed"
    status_hint = 409


class OutcomeUnknown(OperatorNeeded):
    """An earlier run may or may not have done its work; it is not run again by itself."""

    code = "outcome_unknown"


class RecordUnreadable(OperatorNeeded):
    """The record is damaged or written by a newer version; it is neither run nor replayed."""

    code = "record_unreadable"
    status_hint = 503


class Incomparable(OperatorNeeded):
    """The record's fingerprint was made under a rule that this program no longer has."""

    code = "fingerprint_rule_unknown"
    status_hint = 422


class ProgramError(IdempotencyError):
    """The calling code or its configuration is wrong."""

    code = "idempotency_program_error"


class ConfigurationError(ProgramError):
    """Set up wrongly, or used in a way that cannot be right."""

    code = "idempotency_configuration"


class CanonicalizationError(ProgramError):
    """A value or a text has no canonical form; the message names the path, such as ``$.lines[3].meta``."""

    code = "idempotency_canonicalization"


class ResultNotSerializable(ProgramError):
    """The result type has no encoding that would give the same value back."""

    code = "idempotency_result_not_serializable"


class AnswerTooLarge(ProgramError):
    """The answer is larger than this store can keep; nothing was written. What an attempt records is then that
    it is done, without the answer (``too_large``).
    """

    code = "idempotency_answer_too_large"


class LeaseLost(ProgramError):
    """The claim is not ours any more: its lease ended and another run may have started."""

    code = "idempotency_lease_lost"


class AlreadyCommitted(ProgramError):
    """A transaction of this very run has been committed, with its mark: another one must not be, and nobody
    can say of it that it was not done.
    """

    code = "idempotency_already_committed"
