"""Starts the payments app and its card network by themselves, to be tried by hand; Ctrl-C ends both."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from demo import end_on_signals
from network import GOOD
from processes import LOOPBACK, CannotRun
from stack import started, wait_until_up

TRY = """\
The payments app listens on port {port}; the network's ledger is {ledger}
Send this twice, then with another amount:

  curl -i http://{host}:{port}/payments -H 'Authorization: Bearer acme-token' \\
    -H 'Idempotency-Key: order-1' -H 'Content-Type: application/json' \\
    -d '{{"amount": 10.00, "card": "{card}", "reference": "order 1"}}'

Ctrl-C ends it."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--port", type=int, default=8000)
    port = arguments.parse_args().port
    end_on_signals()
    place = Path(tempfile.mkdtemp(prefix="idemcore-payments-"))
    try:
        with started(place, port=port) as stack:
            wait_until_up(stack)
            print(TRY.format(host=LOOPBACK, port=port, ledger=stack.ledger, card=GOOD), flush=True)
            stack.server.wait()
            raise CannotRun("the payments app ended by itself")
    except CannotRun as problem:
        print(f"serve: {problem}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
