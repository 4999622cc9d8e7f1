"""What becomes of an outcome: which answers are kept, and what frees a key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from idemcore.http import everything, final_answers, successes_and
from tests.adapters.http import Got, Http
from tests.adapters.scenario import scenario


@scenario()
def a_failure_is_not_frozen_into_the_key(http: Http) -> None:
    """OUT-01: after a 500 the same request runs again, and its answer is then kept."""
    for code in (500, 502, 503, 504):
        first = http.post(f"/first/{code}", key=f"k{code}")
        second = http.post(f"/first/{code}", key=f"k{code}")
        third = http.post(f"/first/{code}", key=f"k{code}")
        assert (first.status, second.status, third.status) == (code, 201, 201)
        assert not second.replayed
        assert third.replayed
    assert http.runs == 8


@scenario()
def another_request_never_follows_a_failure(http: Http) -> None:
    """A released key keeps its request: ten euros, a 500, then ten thousand is a mismatch."""
    assert http.post("/first/500", body=b'{"amount":10}').status == 500
    assert http.post("/first/500", body=b'{"amount":10000}').code == "idempotency_key_reuse"
    assert http.post("/first/500", body=b'{"amount":10}').status == 201


@scenario()
def an_exception_frees_the_request(http: Http) -> None:
    """OUT-03: by default an exception lets the same request run again."""
    first, second, third = (http.post("/raise-once") for _ in range(3))
    assert first.status == 500
    assert second.status == 201
    assert third.replayed
    assert http.runs == 2


@scenario()
def a_refusal_frees_the_key(http: Http) -> None:
    """OUT-02: a 4xx did nothing; the corrected request may use the key, under the default rule."""
    for code in (400, 401, 402, 403, 404, 409, 422, 429):
        key = f"k{code}"
        assert http.post(f"/first/{code}", key=key, body=b'{"code":"wrong"}').status == code
        assert http.post(f"/first/{code}", key=key, body=b'{"code":"right"}').status == 201
        assert http.post(f"/first/{code}", key=key, body=b'{"code":"right"}').replayed
    assert http.runs == 16


@scenario(keep=final_answers)
def final_answers_keep_refusals_but_not_moments(http: Http) -> None:
    """OUT-02: 402 stands; 401, 408, 409, 425 and 429 describe the moment and free the key."""
    for code in (400, 402, 403, 404, 410, 422):
        first, second = (http.post(f"/first/{code}", key=f"k{code}") for _ in range(2))
        assert (first.status, second.status) == (code, code)
        assert second.replayed
    for code in (401, 408, 409, 425, 429, 500):
        first, second = (http.post(f"/first/{code}", key=f"k{code}") for _ in range(2))
        assert (first.status, second.status) == (code, 201)


@scenario(keep=everything)
def everything_keeps_even_a_500(http: Http) -> None:
    """OUT-01: a 5xx is kept by explicit choice only."""
    first, second = http.post("/first/500"), http.post("/first/500")
    assert (first.status, second.status) == (500, 500)
    assert second.replayed
    assert http.runs == 1


@scenario(keep=lambda answer: answer.status == 201)
def a_rule_of_ones_own(http: Http) -> None:
    """What it says no to is settled by its status: a refusal and a failure run again, a success does not."""
    for code in (400, 402, 500):
        first, second, third = (http.post(f"/first/{code}", key=f"k{code}") for _ in range(3))
        assert (first.status, second.status, third.status) == (code, 201, 201)
        assert (second.replayed, third.replayed) == (False, True)
    assert http.runs == 6
    for code in (200, 202, 303):
        assert http.post(f"/first/{code}", key=f"k{code}").status == code
        told = http.post(f"/first/{code}", key=f"k{code}")
        assert (told.status, told.code) == (422, "response_not_replayable")
        assert told.problem["retry"] == "never"
    assert http.runs == 9


@scenario(keep=lambda answer: answer.status == 402)
def a_success_that_is_not_kept_is_done(http: Http) -> None:
    """A rule that forgets the successes charges nobody twice: of known length, as a stream, and too large."""
    for target in ("/pay", "/empty", "/stream", "/big", "/big-stream"):
        assert http.post(target, key=f"k{target}").status in (200, 201, 204)
        assert http.post(target, key=f"k{target}").code == "response_not_replayable"
    assert http.runs == 5
    assert http.post("/status/402", key="declined").status == 402
    assert http.post("/status/402", key="declined").replayed


@scenario(keep=lambda answer: answer.status == 402, on_abandoned="block")
def a_success_that_is_not_kept_is_no_doubt_under_block(http: Http) -> None:
    """It is done, and no operator has to look."""
    assert http.post().status == 201
    assert http.post().code == "response_not_replayable"
    assert http.runs == 1


@scenario(keep=successes_and(402))
def a_declined_card_is_final_and_a_typing_error_is_not(http: Http) -> None:
    """OUT-02: the 402 is given back; a 400 frees the key for the corrected body."""
    declined, again = (http.post("/first/402", key="card") for _ in range(2))
    assert (declined.status, again.status, again.replayed) == (402, 402, True)
    assert http.post("/first/400", key="typo", body=b"{}").status == 400
    assert http.post("/first/400", key="typo", body=b'{"amount":10}').status == 201
    assert http.runs == 3


@scenario(keep=lambda answer: 1 / 0)
def a_rule_that_raises_keeps(http: Http) -> None:
    """Nobody can say whether the answer is final, so what cannot run it twice is chosen."""
    assert http.post().status == 201
    assert http.post().replayed


@scenario(on_abandoned="block")
def under_block_a_failure_stays_unknown(http: Http) -> None:
    """OUT-03: what may have been done is not done again before a person has looked; a 4xx frees the key."""
    assert http.post("/first/500").status == 500
    got = http.post("/first/500")
    assert got.status == 409
    assert got.code == "outcome_unknown"
    assert got.problem["retry"] == "never"
    assert got["Retry-After"] is None
    assert http.post("/raise-once", key="k2").status == 500
    assert http.post("/raise-once", key="k2").code == "outcome_unknown"
    assert http.post("/first/402", key="k3").status == 402
    assert http.post("/first/402", key="k3").status == 201


@scenario(on_mismatch="ignore")
def a_different_request_gets_the_first_answer_by_choice(http: Http) -> None:
    """KEY-05: for offline clients that edit between attempts; still never a second run."""
    first = http.post(body=b'{"note":"one"}')
    assert http.post(body=b'{"note":"two"}').body == first.body
    assert http.runs == 1


@scenario(statuses={"idempotency_key_reuse": 409})
def a_mismatch_may_say_409(http: Http) -> None:
    """HTT-07: the older status by setting; the code stays the same."""
    http.post()
    got = http.post(body=b"{}")
    assert got.status == 409
    assert got.code == "idempotency_key_reuse"


@scenario(exclude=["sent_at", "/auth/token"])
def what_a_client_stamps_anew_does_not_count(http: Http) -> None:
    """CAN-06: excluded members may change, anything else may not, nor the same name elsewhere."""
    http.post(body=b'{"amount":1,"sent_at":1,"auth":{"token":"a"},"token":"t"}')
    assert http.post(body=b'{"amount":1,"sent_at":2,"auth":{"token":"b"},"token":"t"}').replayed
    assert http.post(body=b'{"amount":2,"sent_at":1,"auth":{"token":"a"},"token":"t"}').status == 422
    assert http.post(body=b'{"amount":1,"sent_at":1,"auth":{"token":"a"},"token":"u"}').status == 422


@scenario(threads=True)
def who_comes_while_it_runs_is_told_to_wait(http: Http) -> None:
    """RAC-01, HTT-07: 409 with Retry-After, nothing runs; afterwards the answer is there."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(http.post, "/slow")
        http.control("entered")
        got = http.post("/slow")
        other = http.post("/slow", body=b'{"amount":11}')
        elsewhere = [http.post(f"/pay/{n}", key=f"other-{n}").status for n in range(5)]
        http.control("open")
        first = running.result()
    assert got.status == 409
    assert got.code == "request_in_progress"
    assert got.problem["retry"] == "same_key_later"
    assert got["Retry-After"] == "1"
    assert other.code == "idempotency_key_reuse"
    assert elsewhere == [201] * 5  # MEM-04: one slow key blocks no other
    assert first.status == 201
    assert http.post("/slow").body == first.body
    assert http.runs == 6


@scenario(threads=True)
def one_of_many_runs(http: Http) -> None:
    """RAC-01: of twenty at once one runs; the others get its answer or 409, and no other error."""
    with ThreadPoolExecutor(20) as pool:
        answers: list[Got] = list(pool.map(lambda _: http.post(), range(20)))
    assert http.runs == 1
    assert {got.status for got in answers} <= {201, 409}
    assert {got.code for got in answers} <= {"", "request_in_progress"}
    assert sum(got.status == 201 and not got.replayed for got in answers) == 1
