"""Where does the time of a protected request go? Its parts, the whole, and the unit, in one interleaved run.

    python -m benchmarks.http [--quick] [--json FILE]

Fingerprints are made without the extra `fast`. Processor time, not wall time: what a request costs its
server. The unit is what remembering a key costs at the least, a dict and a Lock. It tells machines apart, but
not busy ones: neighbours that empty the processor's caches cost a request far more than such a short loop.
"""

from __future__ import annotations

import io
import itertools
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

from benchmarks.adapters import ANSWER, ORDER, RULE, dict_pair, flask_contenders, wsgi_contenders
from benchmarks.harness import Contender, arguments, machine, race, save, show
from idemcore import SINGLE_TENANT, Attempt, Engine
from idemcore.http import AnswerHead, Guard, Request, Run
from idemcore.http.cgi import read_request
from idemcore.http.request import request_fingerprinter

HEAD = AnswerHead("201 Created", [("Content-Type", "application/json"), ("Content-Length", str(len(ANSWER)))])
META: dict[str, object] = {"status": HEAD.status_text, "headers": HEAD.headers}
REQUEST = Request("POST", "/orders", "", "application/json", ORDER)

_numbers = itertools.count()


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    logging.getLogger("idemkit").setLevel(logging.ERROR)
    rounds, calls = (7, 60) if options.quick else (41, 60)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = [
            Contender(f"{framework}: {contender.name}", contender.run)
            for framework, contenders in (
                ("WSGI", wsgi_contenders(Path(folder))),
                ("Flask", flask_contenders(Path(folder))),
            )
            for contender in contenders
            if "SQLite" not in contender.name
        ]
        rows = race(
            [Contender("unit: one dict and Lock pair", dict_pair, base=True), *parts(), *whole],
            rounds=rounds,
            calls=calls,
            title="HTTP",
            cpu_time=True,
        )
    show("Processor time of one request of 1 kB, records in memory", rows)
    if options.json:
        save(options.json, machine("flask", "idemkit"), {"parts and whole": rows})


def parts() -> list[Contender]:
    """What a new request consists of, one after the other."""
    rule = RULE
    idem = Engine("memory://")
    guard = Guard(idem, {"canonicalizer": rule})
    core = guard.policy.core_policy()
    fingerprint = request_fingerprinter(rule, REQUEST)

    def reading(calls: int) -> None:
        for _ in range(calls):
            environ: dict[str, Any] = {
                "REQUEST_METHOD": "POST",
                "PATH_INFO": "/orders",
                "CONTENT_TYPE": "application/json",
                "CONTENT_LENGTH": str(len(ORDER)),
                "wsgi.input": io.BytesIO(ORDER),
            }
            read_request(environ, guard.policy.max_request_bytes)

    def fingerprinting(calls: int) -> None:
        for _ in range(calls):
            request_fingerprinter(rule, REQUEST)

    def claiming_and_recording(calls: int) -> None:
        for _ in range(calls):
            begun = idem.begin(
                scope=SINGLE_TENANT, operation="http", key=_key(), fingerprint=fingerprint, policy=core
            )
            assert isinstance(begun, Attempt)
            begun.complete(ANSWER, META, kind="http")

    def guarding(calls: int) -> None:
        for _ in range(calls):
            run = guard.begin(REQUEST, _key(), SINGLE_TENANT)
            assert isinstance(run, Run)
            run.finish(HEAD, ANSWER)

    return [
        Contender("part: reading the request", reading),
        Contender("part: its fingerprint", fingerprinting),
        Contender("part: claim and record (engine, store)", claiming_and_recording),
        Contender("the three but reading, as the guard does it", guarding),
    ]


def _key() -> str:
    return f"http-{next(_numbers):015}"


if __name__ == "__main__":
    main()
