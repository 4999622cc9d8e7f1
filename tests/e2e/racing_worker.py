# ruff: noqa: T201 - the worker tells its test by standard output
"""A process that races others for the same keys; run by test_races.

    python racing_worker.py DATABASE LEDGER KEYS THREADS

Says ``ready``, waits for a line on standard input, then makes one call for each key in each thread. The
effect is a line appended to the ledger. Every error's class is counted and printed as JSON at the end.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter

from idemcore import Engine, fingerprint
from idemcore.codec import JSON

PRINT = fingerprint({"amount": 10})


def main(database: str, ledger: str, keys: int, threads: int) -> None:
    idem = Engine(f"sqlite:///{database}")
    idem.check()
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    came_to: Counter[str] = Counter()
    lock = threading.Lock()
    barrier = threading.Barrier(threads)

    def call(key: str) -> str:
        def work() -> str:
            os.write(file, f"{key}\n".encode())
            return f"done {key}"

        try:
            result = idem.run(work, scope="t", operation="race", key=key, fingerprint=PRINT, codec=JSON)
        except Exception as error:
            return type(error).__name__
        return "replayed" if result.replayed else "ran" if result.value == f"done {key}" else "wrong answer"

    def race() -> None:
        for number in range(keys):
            barrier.wait()
            outcome = call(f"k{number}")
            with lock:
                came_to[outcome] += 1

    print("ready", flush=True)
    sys.stdin.readline()
    racers = [threading.Thread(target=race) for _ in range(threads)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    idem.close()
    print(json.dumps(came_to), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
