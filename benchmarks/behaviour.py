"""What does the second call get? The same ordinary cases, put to a bare function, idemcore and its peers.

    python -m benchmarks.behaviour [--json FILE] [--redis URL]

Each library protects one function that charges an order, as in `benchmarks/protected.py`: the key is the
order's id, and where the library can compare requests it is told to; all else is its own default. Every phase
of a case runs in a process of its own over a store that outlives it: SQLite for idemcore and DBOS, Redis for
idemkit and Powertools. Charges are counted in a file that no library knows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.harness import arguments, machine
from benchmarks.protected import PROTECT, NotTried

ORDER = {"id": "o-1", "amount": 10}
REORDERED = {"amount": 10, "id": "o-1"}
RESPELLED = {"id": "o-1", "amount": 10.0}
OTHER_AMOUNT = {"id": "o-1", "amount": 99}


class Phase(NamedTuple):
    """One process: what it sends, at once or one after the other, and what befalls the function."""

    orders: list[dict[str, Any]]
    result: str = "receipt"
    together: bool = False
    dies: bool = False
    seconds: float = 0
    later: float = 0
    store_away: bool = False
    recording_fails: bool = False


class Case(NamedTuple):
    title: str
    phases: list[Phase]
    charges: int
    second: str  # what the last send has to get: "first", or "refused"


CASES = [
    Case("the same again", [Phase([ORDER, ORDER])], 1, "first"),
    Case("its members in another order", [Phase([ORDER, REORDERED])], 1, "first"),
    Case("10.0 for 10", [Phase([ORDER, RESPELLED])], 1, "first"),
    Case("another amount under the same key", [Phase([ORDER, OTHER_AMOUNT])], 1, "refused"),
    Case("eight threads at once", [Phase([ORDER] * 8, together=True, seconds=0.3)], 1, "first or refused"),
    Case("the function returns None", [Phase([ORDER, ORDER], "None")], 1, "first"),
    Case("it returns a Decimal", [Phase([ORDER, ORDER], "Decimal")], 1, "first"),
    Case("it returns what cannot be kept", [Phase([ORDER, ORDER], "lock")], 1, "refused"),
    Case(
        "recording fails once, after the charge; sent again after 65 s",
        [Phase([ORDER, ORDER], recording_fails=True, later=65)],
        1,
        "first",
    ),
    Case("the store is away", [Phase([ORDER], store_away=True)], 0, "refused"),
    Case("killed after the charge, sent again", [Phase([ORDER], dies=True), Phase([ORDER])], 1, "refused"),
]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379", help="databases 1 to 5 are emptied")
    parser.add_argument("--phase", help=json.dumps("one phase, for this script's own use"))
    options = parser.parse_args()
    if options.phase:
        run_phase(**json.loads(options.phase))
        return
    verdicts: dict[str, dict[str, dict[str, Any]]] = {}
    with ThreadPoolExecutor(len(PROTECT)) as side_by_side:
        for case in track(CASES, description="behaviour", console=Console(stderr=True)):
            ask = partial(verdict, case, redis=options.redis)
            verdicts[case.title] = dict(zip(PROTECT, side_by_side.map(ask, PROTECT), strict=True))
    show(verdicts)
    if options.json:
        told = machine("idemkit", "aws-lambda-powertools", "dbos")
        Path(options.json).write_text(json.dumps({"machine": told, "cases": verdicts}, indent=1) + "\n")


def verdict(case: Case, name: str, *, redis: str) -> dict[str, Any]:
    """Runs the phases of a case: how often was charged, what the first and the last send got, is it right."""
    with tempfile.TemporaryDirectory() as folder:
        redis = f"{redis}/{list(PROTECT).index(name) + 1}"
        forget_all(redis)
        answers: list[str] = []
        for phase in case.phases:
            given = {"name": name, "folder": folder, "redis": redis, "phase": phase}
            command = [sys.executable, "-m", "benchmarks.behaviour", "--phase", json.dumps(given)]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
            answers += json.loads(ran.stdout.splitlines()[-1]) if ran.stdout.strip() else ["died"]
        ledger = Path(folder, "ledger")
        charges = ledger.read_text().count("charged") if ledger.exists() else 0
    refused = answers[-1].startswith("refused")
    got = "refused" if refused else "first" if answers[0] in (answers[-1], "died") else "something else"
    right = None if answers == ["not tried"] else charges == case.charges and got in case.second
    return {"charges": charges, "first": answers[0], "last": answers[-1], "right": right}


def run_phase(name: str, folder: str, redis: str, phase: list[Any]) -> None:
    """In a process of its own: protects the function, sends, prints what each send got."""
    what = Phase(*phase)
    results = {"receipt": "R-1", "None": None, "Decimal": Decimal("10.50"), "lock": threading.Lock()}

    def charge(order: dict[str, Any]) -> Any:
        with Path(folder, "ledger").open("a") as ledger:
            ledger.write("charged\n")
        if what.dies:
            os._exit(9)  # as kill -9 does
        time.sleep(what.seconds)
        return results[what.result]

    charge.__annotations__["return"] = Decimal if what.result == "Decimal" else Any
    answers = ["" for _ in what.orders]
    try:
        send = PROTECT[name](charge, folder, redis, what.store_away, what.recording_fails)
    except NotTried:
        print(json.dumps(["not tried"]), flush=True)
        os._exit(0)
    except Exception as error:
        print(json.dumps([f"refused: {type(error).__name__}"]), flush=True)
        os._exit(0)

    def sending(place: int) -> None:
        try:
            answers[place] = repr(send(what.orders[place]))
        except Exception as error:
            answers[place] = f"refused: {type(error).__name__}"

    threads = []
    for place in range(len(what.orders)):
        if place and what.later:
            time.sleep(what.later)
        thread = threading.Thread(target=sending, args=(place,))
        thread.start()
        threads.append(thread)
        if not what.together:
            thread.join()
    for thread in threads:
        thread.join()
    print(json.dumps(answers), flush=True)
    os._exit(0)  # whatever threads a library keeps


def forget_all(redis: str) -> None:
    from redis import Redis

    Redis.from_url(redis).flushdb()


def show(verdicts: dict[str, dict[str, dict[str, Any]]]) -> None:
    table = Table(title="What the second call gets: charges, then the last answer")
    table.add_column("case")
    for name in PROTECT:
        table.add_column(name)
    for title, by_name in verdicts.items():
        cells = [
            f"[{'red' if cell['right'] is False else 'green'}]{cell['charges']}, {cell['last']}"
            for cell in by_name.values()
        ]
        table.add_row(title, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
