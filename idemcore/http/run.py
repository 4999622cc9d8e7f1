"""One run of the application under a claim, from the guard's word to the record of its answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from idemcore.attempt import Attempt
from idemcore.current import CURRENT, leave
from idemcore.errors import IdempotencyError
from idemcore.http.answer import HTTPAnswer, fault_of, from_outcome, is_status, to_meta
from idemcore.http.headers import HeaderFilter, can_be_sent
from idemcore.http.kept_answers import AnswerHead
from idemcore.http.policy import HTTPPolicy, Redact
from idemcore.machine import Ending, ending_of
from idemcore.meta import encode_meta
from idemcore.record import Answer, Tombstone
from idemcore.settling import Replay
from idemcore.unfinished import close_coroutine

P = ParamSpec("P")
T = TypeVar("T")

UNPROTECTED: Final = ("Idempotency-Unprotected", "true")

NOTHING: Final = object()
"""In place of what an application returns, until it does."""

_log: Final = logging.getLogger("idemcore")


class Run:
    """The application is to run now.

    Attributes:
        attempt: the claim; None where the store is down and `fail_open` lets the request run without.
        header_filter: tells what of an answer's headers belongs to the operation's result.
        returned: what the application did return; NOTHING until then.
        marks: headers to add to the first client's answer.
        streaming: whether the answer is on its way as a stream that will settle the claim at its end.
    """

    __slots__ = ("_policy", "attempt", "header_filter", "marks", "returned", "streaming")

    def __init__(self, attempt: Attempt | None, policy: HTTPPolicy, header_filter: HeaderFilter) -> None:
        self.attempt = attempt
        self.header_filter = header_filter
        self._policy = policy
        self.returned: object = NOTHING
        self.streaming = False
        self.marks = () if attempt is not None else (UNPROTECTED,)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to record: it ended, user code settled it, or there is no claim."""
        return self.attempt is None or self.attempt.settled

    @property
    def limit(self) -> int:
        """How many bytes of an answer are kept."""
        return self._policy.max_response_bytes

    @property
    def max_hold(self) -> float:
        """For how many seconds the claim may be held."""
        return self._policy.max_hold.total_seconds()

    def ask(self, application: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Calls the application, with the claim as its current attempt; what it returns is noted too.

        In the same step, so that no interrupt finds an application that has returned and is not known to have.
        """
        return self.call(self._noted, application, *args, **kwargs)

    def _noted(self, application: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> object:
        self.returned = application(*args, **kwargs)
        return self.returned

    def call(self, code: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls code of the application's, with the claim as its current attempt."""
        attempt = self.attempt
        if attempt is None:
            return code(*args, **kwargs)
        context = CURRENT.set(attempt)
        try:
            return code(*args, **kwargs)
        finally:
            leave(attempt, context)

    def keeps(self, head: AnswerHead) -> bool:
        """Whether this answer is the operation's final one."""
        try:
            verdict: object = self._policy.keep(head)
        except Exception as error:
            # The work is done and nobody can say whether its answer is final: keeping it is what
            # cannot run it twice. The error's text may quote the answer, so no log has it.
            _log.error("the keep rule raised %s; the answer is kept", type(error).__name__)
            return True
        if isinstance(verdict, bool):
            return verdict
        # A return that was forgotten, or a coroutine: as little is said by it.
        close_coroutine(verdict)
        _log.error("the keep rule returned %s, not a bool; the answer is kept", type(verdict).__name__)
        return True

    def finish(self, head: AnswerHead, body: bytes) -> HTTPAnswer | None:
        """Records a whole answer; returns another one that stands, if this attempt was late."""
        attempt = self.attempt
        if attempt is None or attempt.settled:
            return None
        try:
            if not is_status(head.status_text):
                replay = self._bury(attempt)
            elif self.keeps(head):
                replay = attempt.finish(self._outcome_of(head, body), refused=head.status >= 400)
            else:
                replay = self._unkept(attempt, head)
        except BaseException as error:
            self.broke(error, "not_encodable")
            raise
        return self._given(replay) if replay is not None else None

    def finish_without_body(self, head: AnswerHead, reason: str) -> None:
        """Records that the answer went out and is not there to be kept, for `reason`."""
        attempt = self.attempt
        if attempt is None or attempt.settled:
            return
        try:
            if not is_status(head.status_text):
                self._bury(attempt)
            elif self.keeps(head):
                attempt.tombstone(reason)
            else:
                self._unkept(attempt, head)
        except BaseException as error:
            self.broke(error, reason)
            raise

    def broke(self, error: BaseException, reason: str) -> None:
        """The application has answered, and `error` struck before that was recorded: nothing may free the key.

        Where a transaction that the attempt has joined is open still, its end tells whether the work is done.
        """
        attempt = self.attempt
        if attempt is None or attempt.settled:
            return
        # By its class alone: the text may quote the answer.
        _log.error("%s struck before the answer was recorded; it is not kept", type(error).__name__)
        if attempt.is_held:
            attempt.fail(error)
        else:
            attempt.tombstone(reason)

    def fail(self, error: BaseException) -> None:
        """The application raised; the policy decides."""
        if self.attempt is not None and not self.attempt.settled:
            self.attempt.fail(error)

    def doubt(self, error: BaseException) -> None:
        """Settles at once where the policy's `unknown` names this error, whatever answer is made of it."""
        if ending_of(error, self._policy.core_policy()) is Ending.DOUBT:
            self.fail(error)

    def _outcome_of(self, head: AnswerHead, body: bytes) -> Answer | Tombstone:
        """What is recorded of an answer; a tombstone where that raises, for the work is done."""
        try:
            return self._kept(head, body)
        except Exception as error:
            _log.error("making the record raised %s; the answer is not kept", type(error).__name__)
            return Tombstone("not_encodable")

    def _kept(self, head: AnswerHead, body: bytes) -> Answer | Tombstone:
        policy = self._policy
        if len(body) > policy.max_response_bytes:
            return Tombstone("too_large")
        if not policy.keep_body:
            return Tombstone("not_kept")
        status, headers = head.status_text, self.header_filter.kept(head.headers)
        if policy.redact is not None:
            redacted = self._redacted(policy.redact, HTTPAnswer(status, headers, body))
            if redacted is None:
                return Tombstone("not_redacted")
            status, headers, body = redacted.status_text, list(redacted.headers), bytes(redacted.body)
            if len(body) > policy.max_response_bytes:
                return Tombstone("too_large")
        elif not can_be_sent(headers):
            _log.error("a header of the answer cannot be sent (RFC 9110, section 5); the answer is not kept")
            return Tombstone("not_sendable")
        # As Answer(…) makes it, but for a call of Python's own: this is on the way of every request.
        return tuple.__new__(Answer, ("http", encode_meta(to_meta(status, headers, len(body))), body))

    def _redacted(self, redact: Redact, answer: HTTPAnswer) -> HTTPAnswer | None:
        """What may be stored of an answer; None where nobody can say, for it may hold the secret."""
        try:
            redacted: object = redact(answer)
        except Exception as error:
            # By its class alone: the text may quote what was to be redacted.
            _log.error("redact raised %s; the answer is not kept", type(error).__name__)
            return None
        if not isinstance(redacted, HTTPAnswer):
            close_coroutine(redacted)
            _log.error("redact returns an HTTPAnswer, not %s; the answer is not kept", type(redacted).__name__)
            return None
        fault = fault_of(redacted.status_text, redacted.headers, redacted.body)
        if fault is not None:
            _log.error("redact returned no answer: %s; the answer is not kept", fault)
            return None
        return redacted

    def _bury(self, attempt: Attempt) -> Replay | None:
        """Nobody can say what such an answer means, and no retry could be given it; the work may be done."""
        _log.error("the answer's status is none (RFC 9110, section 15); the answer is not kept")
        return attempt.tombstone("not_encodable")

    def _unkept(self, attempt: Attempt, head: AnswerHead) -> Replay | None:
        """Settles by what the status says of the work, for no rule about answers undoes that."""
        status = head.status
        if status >= 500:
            attempt.fail(reason=f"status_{status}")
            return None
        if status >= 400:
            attempt.refuse()
            return None
        _log.warning("the keep rule says no to a %d; the work is recorded as done, without its answer", status)
        return attempt.tombstone("not_kept")

    def _given(self, replay: Replay) -> HTTPAnswer | None:
        try:
            return from_outcome(replay.outcome, self._policy.replayed_header)
        except IdempotencyError:  # what stands cannot be given as an answer, so the client gets its own
            return None
