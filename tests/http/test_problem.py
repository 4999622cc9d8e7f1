"""Refusals as answers: each case of the contract's table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from idemcore import errors
from idemcore.errors import ConfigurationError, IdempotencyError
from idemcore.http.problem import CODES, Problem, Refusals

TABLE: list[tuple[IdempotencyError, int, str, str, str | None]] = [
    (errors.KeyMissing("m"), 400, "idempotency_key_missing", "fix_request", None),
    (errors.KeyInvalid("m"), 400, "idempotency_key_invalid", "fix_request", None),
    (errors.ScopeMissing("m"), 400, "idempotency_scope_missing", "fix_request", None),
    (errors.RequestTooLarge("m"), 413, "request_too_large", "fix_request", None),
    (errors.RequestIncomplete("m"), 400, "request_incomplete", "fix_request", None),
    (errors.LengthRequired("m"), 411, "request_length_required", "fix_request", None),
    (errors.InProgress("m", retry_after=1.2), 409, "request_in_progress", "same_key_later", "2"),
    (errors.FingerprintMismatch("m"), 422, "idempotency_key_reuse", "new_key", None),
    (errors.Incomparable("m"), 422, "fingerprint_rule_unknown", "never", None),
    (errors.NotReplayable("m", reason="too_large"), 422, "response_not_replayable", "never", None),
    (errors.NotReplayable("m", final=False), 422, "response_not_replayable", "never", None),
    (errors.ReplayForbidden("m"), 403, "replay_forbidden", "never", None),
    (errors.OutcomeUnknown("m"), 409, "outcome_unknown", "never", None),
    (errors.StoreUnavailable("m"), 503, "store_unavailable", "same_key_later", "1"),
    (errors.StoreFull("m"), 503, "store_unavailable", "same_key_later", "1"),
    (errors.RecordUnreadable("m"), 503, "record_unreadable", "same_key_later", "60"),
]


@pytest.mark.parametrize(("error", "status", "code", "retry", "after"), TABLE, ids=lambda part: str(part)[:30])
def test_each_case_of_the_table(
    error: IdempotencyError, status: int, code: str, retry: str, after: str | None
) -> None:
    """HTT-07: status, code, what is safe to do next, and when."""
    answer = Refusals().answer(error)
    told = json.loads(answer.body)
    assert (answer.status, told["status"], told["code"], told["retry"]) == (status, status, code, retry)
    assert told["type"].endswith(code)
    assert told["title"] not in ("", "Request refused")
    assert (told["detail"] == "m") is not isinstance(error, errors.StoreUnavailable)
    assert answer.header("Retry-After") == after
    assert answer.header("Cache-Control") == "no-store"
    assert answer.header("Content-Type") == "application/problem+json"
    assert answer.header("Content-Length") == str(len(answer.body))
    assert not answer.is_replay


def test_no_digest_of_the_key_is_told() -> None:
    """The digest is for logs."""
    assert b"abc123" not in Refusals().answer(errors.KeyInvalid("m", key_digest="abc123")).body


def test_every_error_that_a_client_may_see_is_in_the_table() -> None:
    """A new error does not reach clients by a default title."""
    told = {type(error) for error, *_ in TABLE}

    def leaves(cls: type[IdempotencyError]) -> set[type[IdempotencyError]]:
        below = [leaves(sub) for sub in cls.__subclasses__() if sub.__module__ == "idemcore.errors"]
        return set().union({cls}, *below)

    clients = leaves(errors.CallerError) | leaves(errors.TryLater) | leaves(errors.OperatorNeeded)
    no_answers = {errors.CallerError, errors.TryLater, errors.OperatorNeeded, errors.RecordedFailure}
    assert clients - told == no_answers


def test_a_programs_fault_is_raised_again() -> None:
    """It is no client's business."""
    with pytest.raises(ConfigurationError):
        Refusals().answer(ConfigurationError("m"))


def test_statuses_and_types_of_ones_own() -> None:
    """By code; the rest stays as it is."""
    statuses = {"request_in_progress": 425, "idempotency_key_reuse": 499}
    refusals = Refusals(statuses, "https://api.example/problems/")
    answer = refusals.answer(errors.InProgress("m", retry_after=3))
    assert answer.status_text == "425 Too Early"
    assert answer.header("Retry-After") == "3"
    assert json.loads(answer.body)["type"] == "https://api.example/problems/request_in_progress"
    assert json.loads(answer.body)["status"] == 425
    assert refusals.answer(errors.FingerprintMismatch("m")).status_text == "499 Refused"
    assert refusals.answer(errors.KeyMissing("m")).status == 400


@pytest.mark.parametrize("wrong", [{"no_such_code": 400}, {"outcome_unknown": 200}, {"outcome_unknown": "409"}])
def test_a_wrong_status_is_refused(wrong: dict[str, Any]) -> None:
    """At start-up; a refusal is never told as a success."""
    with pytest.raises(ConfigurationError):
        Refusals(wrong)


def test_an_application_renders_in_its_own_style() -> None:
    """Its body and type; status, Retry-After and Cache-Control stay, so a client still knows what to do."""
    seen: list[Problem] = []

    def render(problem: Problem) -> tuple[str, bytes]:
        seen.append(problem)
        return "text/plain", f"{problem.code}!".encode()

    answer = Refusals(render=render).answer(errors.StoreUnavailable("m", retry_after=5))
    assert (answer.status, answer.body, answer.header("Content-Type")) == (
        503,
        b"store_unavailable!",
        "text/plain",
    )
    assert (answer.header("Retry-After"), answer.header("Cache-Control")) == ("5", "no-store")
    assert answer.header("Content-Length") == str(len(answer.body))
    assert (seen[0].retry, seen[0].retry_after) == ("same_key_later", 5)


def test_a_renderer_that_raises_is_not_in_the_way(caplog: pytest.LogCaptureFixture) -> None:
    """The refusal is told as problem+json; the error is logged by its class, for its text may quote things."""

    def render(problem: Problem) -> tuple[str, bytes]:
        raise OSError("s3cr3t")

    answer = Refusals(render=render).answer(errors.KeyMissing("m"))
    assert answer.header("Content-Type") == "application/problem+json"
    assert "render raised OSError" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_a_renderer_that_returns_text_is_not_in_the_way() -> None:
    """A body is bytes."""
    wrong: Any = lambda problem: ("text/plain", "text")  # noqa: E731 - as a caller would write it
    assert (
        Refusals(render=wrong).answer(errors.KeyMissing("m")).header("Content-Type")
        == "application/problem+json"
    )


def test_the_codes_are_those_of_the_table() -> None:
    """What `statuses` may name is what a client may meet."""
    assert {code for _, _, code, *_ in TABLE} == set(CODES)


def test_a_stranger_is_not_told_which_store_is_away() -> None:
    """What is wrong with which database stands in the log, and in no answer."""
    problem = Refusals().problem(errors.StoreUnavailable("PostgreSQL cannot be reached."))
    assert "PostgreSQL" not in problem.detail
    assert "same key" in problem.detail
