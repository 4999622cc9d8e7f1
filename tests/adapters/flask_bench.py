"""A Flask app on a bench: its extension, a client, the events and the runs so far."""

from __future__ import annotations

from collections import Counter
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from idemcore import SINGLE_TENANT, Engine
from idemcore.events import Event
from idemcore_flask import Idempotency


class FlaskBench:
    """Makes an app with the extension set up; views count themselves by `ran`."""

    def __init__(self, *, store: Any = "memory://", scope: Any = SINGLE_TENANT, **options: Any) -> None:
        self.events: list[Event] = []
        self.counts: Counter[str] = Counter()
        self.idem = Engine(store, observers=[self.events.append])
        self.app = Flask("bench")
        self.app.secret_key = "not one"
        self.idempotency = Idempotency()
        self.options = {"engine": self.idem, "scope": scope, **options}

    def start(self) -> FlaskBench:
        """Sets the extension up, after the app's own hooks where a test hangs some up before."""
        self.idempotency.init_app(self.app, **self.options)
        return self

    def ran(self, what: str = "view") -> int:
        self.counts[what] += 1
        return self.counts[what]

    @property
    def runs(self) -> int:
        return self.counts["view"]

    def post(self, path: str = "/", key: str | None = "k", **more: Any) -> TestResponse:
        headers = dict(more.pop("headers", {}))
        if key is not None:
            headers["Idempotency-Key"] = key
        more.setdefault("buffered", True)  # else the answer is not taken until a test asks for its data
        if not more.keys() & {"data", "json"}:
            more["json"] = {"amount": 10}
        return self.app.test_client().open(path, method=more.pop("method", "POST"), headers=headers, **more)

    def twice(self, path: str = "/", **more: Any) -> tuple[TestResponse, TestResponse]:
        return self.post(path, **more), self.post(path, **more)


def replayed(response: TestResponse) -> bool:
    return response.headers.get("Idempotent-Replayed") == "true"


def code_of(response: TestResponse) -> str:
    """Of a refusal; empty for an answer of the app's."""
    if response.content_type != "application/problem+json":
        return ""
    told: dict[str, str] = response.get_json(force=True)
    return told["code"]
