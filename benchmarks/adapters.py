"""What does protecting a request cost? A bare app, the same app protected, and a peer, in one run.

    python -m benchmarks.adapters [--quick] [--json FILE]

Requests are handed to the WSGI application directly, 1 kB of JSON each, so that no server and no client is
measured along. "Added" is what a call costs on top of the bare application of its table.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Flask, request

from benchmarks.harness import Contender, arguments, machine, race, save, show
from idemcore import SINGLE_TENANT, Canonicalizer, Engine
from idemcore_flask import Idempotency
from idemcore_wsgi import IdempotencyMiddleware

App = Callable[[dict[str, Any], Any], Any]

ORDER = json.dumps(
    {
        "customer": {"id": 4711, "name": "Jana Nováková", "email": "jana@example.org"},
        "currency": "EUR",
        "lines": [
            {"sku": f"SKU-{n:05}", "quantity": n + 1, "price": 19.9 + n, "note": "gift wrap, please"}
            for n in range(11)
        ],
        "total": 412.5,
    }
).encode()
RULE = Canonicalizer(fast=False)  # what every installation has
ANSWER = b'{"order":"A-2001","status":"accepted"}'


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    logging.getLogger("idemkit").setLevel(logging.ERROR)
    rounds, calls = (5, 100) if options.quick else (31, 300)
    with tempfile.TemporaryDirectory() as folder:
        groups = {
            "A WSGI application that does nothing": race(
                wsgi_contenders(Path(folder)), rounds=rounds, calls=calls, title="WSGI"
            ),
            "A Flask view": race(flask_contenders(Path(folder)), rounds=rounds, calls=calls, title="Flask"),
        }
    unit = race(
        [Contender("one dict and Lock pair", dict_pair, base=True)], rounds=9, calls=20_000, title="unit"
    )
    groups["The unit: what remembering costs without any of it"] = unit
    for title, rows in groups.items():
        show(title, rows)
    if options.json:
        save(options.json, machine("flask", "sqlalchemy", "idemkit"), groups)


def wsgi_contenders(folder: Path) -> list[Contender]:
    def bare(environ: dict[str, Any], start_response: Any) -> Any:
        environ["wsgi.input"].read()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(ANSWER)))]
        start_response("201 Created", headers)
        return [ANSWER]

    def protected(url: str) -> App:
        return IdempotencyMiddleware(bare, engine(url), scope=SINGLE_TENANT, canonicalizer=RULE)

    sqlite = f"sqlite:///{folder / 'wsgi.db'}"
    contenders = [
        Contender("bare", sender(bare, lambda: None), base=True),
        Contender("no key", sender(protected("memory://"), lambda: None)),
        Contender("new, memory", sender(protected("memory://"), new_key)),
        Contender("replay, memory", sender(protected("memory://"), same_key())),
        Contender("new, SQLite", sender(protected(sqlite), new_key)),
        Contender("replay, SQLite", sender(protected(sqlite), same_key())),
    ]
    return contenders + idemkit_contenders(bare)


def flask_contenders(folder: Path) -> list[Contender]:
    def app(url: str | None) -> App:
        flask_app = Flask("orders")
        idempotency = Idempotency()

        def create_order() -> tuple[bytes, int, dict[str, str]]:
            request.get_json()
            return ANSWER, 201, {"Content-Type": "application/json"}

        view: Any = create_order
        if url is not None:
            idempotency.init_app(flask_app, engine=engine(url), scope=SINGLE_TENANT, canonicalizer=RULE)
            view = idempotency.optional(create_order)
        flask_app.add_url_rule("/orders", view_func=view, methods=["POST"])
        return flask_app

    sqlite = f"sqlite:///{folder / 'flask.db'}"
    return [
        Contender("bare", sender(app(None), lambda: None), base=True),
        Contender("no key", sender(app("memory://"), lambda: None)),
        Contender("new, memory", sender(app("memory://"), new_key)),
        Contender("replay, memory", sender(app("memory://"), same_key())),
        Contender("new, SQLite", sender(app(sqlite), new_key)),
        Contender("replay, SQLite", sender(app(sqlite), same_key())),
    ]


def idemkit_contenders(bare: App) -> list[Contender]:
    from idemkit import HttpConfig, InMemoryBackend, WSGIIdempotencyMiddleware

    def protected() -> App:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return WSGIIdempotencyMiddleware(
                bare, backend=InMemoryBackend(max_size=1_000_000), config=HttpConfig(scope_mode="single_tenant")
            )

    return [
        Contender("idemkit: new, memory", sender(protected(), new_key)),
        Contender("idemkit: replay, memory", sender(protected(), same_key())),
    ]


def engine(url: str) -> Engine:
    idem = Engine(url)
    idem.create_schema()
    return idem


def sender(app: App, key: Callable[[], str | None]) -> Callable[[int], None]:
    """Sends an order `calls` times; the answer is looked at, so nothing can be fast by being wrong."""
    base: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/orders",
        "QUERY_STRING": "",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(ORDER)),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.errors": io.StringIO(),
    }
    statuses: list[str] = []

    def start_response(status: str, headers: Any, exc_info: Any = None) -> Any:
        statuses.append(status)

    def run(calls: int) -> None:
        for _ in range(calls):
            environ = {**base, "wsgi.input": io.BytesIO(ORDER)}
            chosen = key()
            if chosen is not None:
                environ["HTTP_IDEMPOTENCY_KEY"] = chosen
            chunks = app(environ, start_response)
            body = b"".join(chunks)
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
            assert body == ANSWER, body
            assert statuses.pop().startswith("201")

    return run


_numbers = itertools.count()
_session = uuid.uuid4().hex[:16]


def new_key() -> str:
    return f"{_session}-{next(_numbers):015}"


def same_key() -> Callable[[], str]:
    key = new_key()
    return lambda: key


_records: dict[str, str] = {}
_lock = threading.Lock()


def dict_pair(calls: int) -> None:
    """Claim and complete in a dict under a lock: the least that remembering a key can cost."""
    for _ in range(calls):
        key = new_key()
        with _lock:
            if key not in _records:
                _records[key] = "claimed"
        with _lock:
            _records[key] = "done"
    _records.clear()


if __name__ == "__main__":
    main()
