"""The pages about HTTP say what the code does: codes, options, blocks that run, the OpenAPI fragment."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from idemcore import errors
from idemcore.http import HTTPOptions, HTTPPolicy, successes
from idemcore.http.key import parse_key
from idemcore.http.problem import CODES, Refusals
from tests.adapters.flask_bench import code_of

DOCS = Path(__file__).parents[1] / "docs" / "http"
PAGES = sorted(DOCS.rglob("*.md"))
FRAGMENT: dict[str, Any] = json.loads((DOCS / "openapi.json").read_text())


def test_each_problem_has_its_page() -> None:
    """HTT-07: a refusal's type can be looked up; the page's first line tells code, status and retry."""
    assert {page.stem for page in (DOCS / "problems").glob("*.md")} == set(CODES)
    by_code = {cls.code: cls for cls in _leaves(errors.IdempotencyError)}
    for code in CODES:
        problem = Refusals().problem(by_code[code]("m"))
        page = (DOCS / "problems" / f"{code}.md").read_text().splitlines()
        assert page[0] == f"# {problem.title}"
        assert page[2] == f"`{code}` · status {problem.status} · retry `{problem.retry}`"


def _leaves(cls: type[errors.IdempotencyError]) -> list[type[errors.IdempotencyError]]:
    below = [leaf for sub in cls.__subclasses__() for leaf in _leaves(sub)]
    return [*below, cls]  # the more general last, so that by code it is the one that counts


def test_every_option_is_described() -> None:
    """An option that exists is in the table, in the order of the code, and the other way round."""
    described = re.findall(r"^\| `(\w+)` \|", (DOCS / "options.md").read_text(), re.MULTILINE)
    assert described == [field.name for field in fields(HTTPPolicy)]
    assert list(HTTPOptions.__annotations__) == described


def test_every_default_is_the_one_of_the_code() -> None:
    """An app that leaves an option out gets what the table says."""
    said = re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", (DOCS / "options.md").read_text(), re.MULTILINE)
    for name, text in said:
        default = getattr(HTTPPolicy(), name)
        assert default == MEANINGS.get(text, text.strip('`"')) or (text in NOT_SET and default in (None, ())), (
            name
        )
    assert len(said) == len(fields(HTTPPolicy))


NOT_SET = ("none", "nothing", "problem+json", "made of the two above", "as in [problems/](problems/)")
MEANINGS = {
    "`POST`, `PATCH`": {"POST", "PATCH"},
    '`"http"`; with `key` `"route"`': "http",
    "`successes`": successes,
    "`True`": True,
    "`False`": False,
    "0": timedelta(0),
    "24 hours": timedelta(hours=24),
    "30 seconds": timedelta(seconds=30),
    "10 minutes": timedelta(minutes=10),
    "10 MiB": 10 * 2**20,
    "1 MiB": 2**20,
}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def run(block: str) -> Any:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, "page", "exec"), names)  # noqa: S102 - our own page
    return names["app"].test_client()


KEY = {"Idempotency-Key": "k"}


def test_every_block_is_run_by_a_test_of_this_file() -> None:
    """A new block without a test below is a promise that nobody keeps."""
    assert {
        page.name: len(blocks(page.name)) for page in PAGES if page.parent == DOCS and blocks(page.name)
    } == {
        "cors.md": 1,
        "options.md": 4,
        "order.md": 1,
    }


def test_browsers_may_send_a_key_and_see_a_replay() -> None:
    """HTT-03: the preflight passes without a key; replays and refusals carry the CORS answer."""
    client = run(blocks("cors.md")[0])
    client.application.post("/")(lambda: "done")
    preflight = client.options("/")
    assert preflight.status_code == 200
    assert "Idempotency-Key" in preflight.headers["Access-Control-Allow-Headers"]
    answers = [client.post("/", headers=KEY), client.post("/", headers=KEY), client.post("/")]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    for answer in answers:
        assert answer.headers.getlist("Access-Control-Allow-Origin") == ["https://shop.example"]
        assert "Idempotent-Replayed" in answer.headers["Access-Control-Expose-Headers"]


def test_a_check_above_the_key_layer_guards_replays() -> None:
    """SEC: the order that the page recommends."""
    client = run(blocks("order.md")[0])
    known = {**KEY, "Authorization": "Bearer secret"}
    assert client.post("/payments", headers=known).status_code == 201
    assert client.post("/payments", headers=KEY).status_code == 401
    assert client.post("/payments", headers=known).headers["Idempotent-Replayed"] == "true"


def test_the_answers_of_the_page_that_are_kept() -> None:
    """OUT-02: the decline is final, the typing error is not, and a view may say that nothing was done."""
    client = run(blocks("options.md")[0])

    def send(path: str, key: str, **body: int) -> tuple[int, bool]:
        got = client.post(path, headers={"Idempotency-Key": key}, json=body)
        return got.status_code, "Idempotent-Replayed" in got.headers

    assert [send("/payments", "large", amount=5000) for _ in range(2)] == [(402, False), (402, True)]
    assert [send("/payments", "typo"), send("/payments", "typo", amount=5)] == [(400, False), (201, False)]
    assert send("/payments", "typo", amount=5) == (201, True)
    assert [send("/refunds", "r") for _ in range(2)] == [(404, False), (404, True)]
    assert [send("/quotes", "q") for _ in range(2)] == [(200, False), (200, False)]


def test_the_webhook_of_the_page() -> None:
    """The event id is the key, and the number of the attempt does not count."""
    client = run(blocks("options.md")[1])
    send = [client.post("/webhooks/payments", json={"id": "evt_1", "attempt": n, "sum": 5}) for n in (1, 2)]
    assert [answer.get_json() for answer in send] == [{"seen": "evt_1"}] * 2
    assert send[1].headers["Idempotent-Replayed"] == "true"
    assert code_of(client.post("/webhooks/payments", json={"id": "evt_1", "sum": 6})) == "idempotency_key_reuse"


def test_the_secret_of_the_page() -> None:
    """SEC-01: it is shown once."""
    client = run(blocks("options.md")[2])
    first, second = (client.post("/tokens", headers=KEY) for _ in range(2))
    assert (first.get_json(), second.get_json()) == ({"token": "s3cr3t"}, {"token": "shown once"})
    assert second.status_code == 201


def test_the_change_of_rule_of_the_page() -> None:
    """CAN-09: a parameter that does not count any more, while the former rule's records still answer."""
    client = run(blocks("options.md")[3])
    first = client.post("/orders?trace=1", headers=KEY, json={"sent_at": 1, "sum": 5})
    again = client.post("/orders?trace=2", headers=KEY, json={"sent_at": 2, "sum": 5})
    assert (first.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")


def test_the_openapi_fragment_describes_our_refusals() -> None:
    """Codes, words for `retry` and members are those of the code; all references lead somewhere."""
    schema = FRAGMENT["components"]["schemas"]["IdempotencyProblem"]
    assert schema["properties"]["code"]["enum"] == list(CODES)
    by_code = {cls.code: cls for cls in _leaves(errors.IdempotencyError)}
    problems = [Refusals().problem(by_code[code]("m")) for code in CODES]
    assert set(schema["properties"]["retry"]["enum"]) == {problem.retry for problem in problems}
    told = json.loads(Refusals().answer(errors.KeyMissing("m")).body)
    assert schema["required"] == list(told) == list(schema["properties"])
    for reference in re.findall(
        r'"\$ref": "#/([^"]+)"', json.dumps(FRAGMENT) + (DOCS / "openapi.md").read_text()
    ):
        place: Any = FRAGMENT
        for step in reference.split("/"):
            place = place[step]


def test_the_fragments_pattern_is_what_a_bare_key_may_be() -> None:
    """A client that is made from the document sends keys that are taken."""
    for name in ("IdempotencyKey", "OptionalIdempotencyKey"):
        parameter = FRAGMENT["components"]["parameters"][name]
        assert parameter["required"] is (name == "IdempotencyKey")
        pattern = re.compile(parameter["schema"]["pattern"])
        for code in range(256):
            char = chr(code)
            try:
                taken = parse_key(char) == char
            except errors.KeyInvalid:
                taken = False
            assert bool(pattern.search(char)) is taken, char
