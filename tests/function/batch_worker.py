"""One process of a batch, to be killed: `python batch_worker.py DATABASE PROVIDER FOLDER COUNT`.

What the provider did lies in the folder: this is the ledger that the verdict comes from. A provider that
deduplicates keeps one file for each key; the others append a line for each request, whatever came before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from idemcore import Engine, Policy, current_attempt
from idemcore_function import idempotent, run_batch

LEASE = timedelta(seconds=3)


def main(database: str, provider: str, folder: Path, count: int) -> None:
    idem = Engine(
        f"sqlite:///{database}",
        policy=Policy(lease=LEASE, on_abandoned="block" if provider == "block" else "rerun"),
    )
    idem.create_schema()

    @idempotent(idem, key="{n}", namespace="payouts")
    def pay(n: int) -> int:
        if provider == "deduplicates":
            keyed = folder / "keys" / current_attempt().child_key("pay")
            os.close(os.open(keyed, os.O_CREAT | os.O_WRONLY))
        ledger = os.open(folder / "requests", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(ledger, f"{n}\n".encode())
        os.close(ledger)
        time.sleep(0.001)  # the provider's answer is on its way
        return n

    sys.stdout.write(json.dumps(run_batch(pay, range(count), workers=2).as_dict()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
