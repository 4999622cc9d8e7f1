"""The published descriptions: valid, and kept by the payments example whatever a fuzzer makes of them."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "http"
DEMO = ROOT / "examples" / "payments"
FRAGMENT: dict[str, Any] = json.loads((DOCS / "openapi.json").read_text())
PATHS = ("/payments", "/transfers", "/payments/{payment_id}", "/orders")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def test_the_fragment_is_valid() -> None:
    """HTT-07: as it is, and merged into a document with an operation, as the page shows."""
    OpenAPIV31SpecValidator(FRAGMENT).validate()  # type: ignore[arg-type]
    (operation,) = re.findall(r"```json\n(.*?)```", (DOCS / "openapi.md").read_text(), re.DOTALL)
    whole = {**FRAGMENT, "paths": {"/payments": json.loads(operation)}}
    OpenAPIV31SpecValidator(whole).validate()  # type: ignore[arg-type]
    broken = copy.deepcopy(whole)
    broken["components"]["parameters"]["IdempotencyKey"]["in"] = "nowhere"
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV31SpecValidator(broken).validate()


def test_the_example_is_described_by_a_valid_document() -> None:
    """It refers to the fragment instead of repeating it."""
    path = DEMO / "openapi.json"
    OpenAPIV31SpecValidator(json.loads(path.read_text()), base_uri=path.as_uri()).validate()


class Network:
    """The card network: counts what it charged."""

    def __init__(self) -> None:
        self.charged = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        wanted = json.loads(request.content)
        if wanted["card"].startswith("4000"):
            return httpx.Response(402)
        self.charged += 1
        return httpx.Response(200, json={"id": f"ch_{self.charged}", "amount": wanted["amount"]})


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Network]]:
    """The payments app in this process, over a network in this process."""
    network = Network()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAYMENTS_DATABASE", str(tmp_path_factory.mktemp("demo") / "payments.db"))
        patch.setenv("PAYMENTS_NETWORK", "http://network.example")
        patch.setenv("PAYMENTS_TENANTS", json.dumps({path: path for path in PATHS}))
        spec = importlib.util.spec_from_file_location("payments_app", DEMO / "app.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)  # where pydantic looks for what annotations mean
        spec.loader.exec_module(module)
        module.network.close()
        module.network = httpx.Client(
            base_url="http://network.example", transport=httpx.MockTransport(network.answer)
        )
        yield module.app, network
        module.network.close()
        module.idem.close()


@pytest.fixture(scope="module")
def described(demo: tuple[Any, Network]) -> Any:
    """The description, with the app that it is of."""
    schema = schemathesis.openapi.from_path(DEMO / "openapi.json")
    schema.app = demo[0]
    return schema


@pytest.mark.slow
@pytest.mark.parametrize("method_and_path", [f"{'GET' if '{' in path else 'POST'} {path}" for path in PATHS])
def test_the_example_answers_as_its_description_says(
    method_and_path: str, described: Any, demo: tuple[Any, Network]
) -> None:
    """HTT-07: whatever a fuzzer sends: no 500, every answer is a described one, and a retry charges nothing."""
    app, network = demo
    method, _, path = method_and_path.partition(" ")
    # A tenant for each, since equal seeds make equal keys.
    headers = {"Authorization": f"Bearer {path}"}

    @seed(6)
    @settings(max_examples=80, database=None, suppress_health_check=list(HealthCheck))
    @given(case=described[path][method].as_strategy())
    def play(case: Any) -> None:
        first = case.call(app=app, headers=headers)
        case.validate_response(first, checks=CHECKS)
        statuses[first.status_code] += 1
        if first.status_code == 201:
            charged = network.charged
            again = case.call(app=app, headers=headers)
            assert network.charged == charged
            assert again.headers["idempotent-replayed"] == ["true"]
            assert again.content == first.content

    statuses: Counter[int] = Counter()
    play()
    assert statuses[201 if method == "POST" else 404]
