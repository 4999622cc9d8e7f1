"""A fake card network, in a process of its own: its ledger alone says what was charged.

`POST /charges` takes JSON (merchant, reference, amount in cents, card) and appends one line per charge to
`ledger.jsonl`, flushed to the disk before it answers. A caller may send an `Idempotency-Key` of its own:
the same key gets the same charge again, without a second line. Every question is noted in `asked.jsonl`,
so that a charge which was asked for twice is told apart from one that was asked for once. `POST /notices`
takes the same JSON and charges nothing: each one is a line of `notices.jsonl`.

The card number decides how it behaves, as with the test cards of real networks.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO

from processes import end_with_parent

GOOD = "4242424242424242"
DECLINED = "4000000000000002"
FAILS_ONCE = "4000000000000119"  # the first question about a reference gets a 500, before any charge
SLOW = "4000000000000077"  # thinks before it charges
ANSWERS_LATE = "4000000000000259"  # charges at once; the first answer about a reference is held back

THINKING = 0.4
HELD_BACK = 3.0


class Network:
    """Charges cards and writes down each charge before anyone hears of it."""

    def __init__(self, directory: Path) -> None:
        self._ledger = (directory / "ledger.jsonl").open("a", encoding="utf-8")
        self._asked = (directory / "asked.jsonl").open("a", encoding="utf-8")
        self._notices = (directory / "notices.jsonl").open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._charges_by_key: dict[tuple[str, str], dict[str, Any]] = {}
        self._references: set[str] = set()
        self._count = 0

    def charge(self, order: dict[str, Any], key: str | None, by: str) -> tuple[HTTPStatus, dict[str, Any]]:
        card = order["card"]
        with self._lock:
            first = order["reference"] not in self._references
            self._references.add(order["reference"])
            self._write(self._asked, {**order, "key": key, "by": by, "at": time.time()}, to_disk=False)
        if card == DECLINED:
            return HTTPStatus.PAYMENT_REQUIRED, {"error": "declined"}
        if card == FAILS_ONCE and first:
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "out of order"}
        if card == SLOW:
            time.sleep(THINKING)
        charge = self._charge_once(order, key, by)
        if card == ANSWERS_LATE and first:
            time.sleep(HELD_BACK)
        return HTTPStatus.CREATED, charge

    def notice(self, order: dict[str, Any], by: str) -> tuple[HTTPStatus, dict[str, Any]]:
        with self._lock:
            first = order["reference"] not in self._references
            self._references.add(order["reference"])
            self._write(self._notices, {**order, "by": by, "at": time.time()}, to_disk=False)
        if order["card"] == ANSWERS_LATE and first:
            time.sleep(HELD_BACK)
        return HTTPStatus.ACCEPTED, {}

    def _charge_once(self, order: dict[str, Any], key: str | None, by: str) -> dict[str, Any]:
        with self._lock:
            if key is not None and (known := self._charges_by_key.get((order["merchant"], key))):
                return known
            self._count += 1
            charge = {"id": f"ch_{self._count:05}", "amount": order["amount"]}
            self._write(self._ledger, {**order, **charge, "by": by, "at": time.time()}, to_disk=True)
            if key is not None:
                self._charges_by_key[order["merchant"], key] = charge
            return charge

    def _write(self, file: TextIO, line: dict[str, Any], *, to_disk: bool) -> None:
        file.write(json.dumps(line) + "\n")
        file.flush()
        if to_disk:
            os.fsync(file.fileno())


class Answering(BaseHTTPRequestHandler):
    """HTTP around the network; connections are kept open."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # status, headers and body leave in one piece
    disable_nagle_algorithm = True
    network: Network

    def do_POST(self) -> None:  # the name is http.server's
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, by = self.headers.get("Idempotency-Key"), self.headers.get("User-Agent", "")
        notice = self.path == "/notices"
        status, body = self.network.notice(order, by) if notice else self.network.charge(order, key, by)
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # likewise
        """The two files say more than an access log would."""


class Server(ThreadingHTTPServer):
    """Listens on a socket that the parent has bound, so that the port is known before we run."""

    daemon_threads = True

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), Answering, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that was killed while it waited is what the demo is about."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--directory", type=Path, required=True)
    arguments.add_argument("--fd", type=int, required=True, help="the listening socket")
    options = arguments.parse_args()
    end_with_parent()
    Answering.network = Network(options.directory)
    Server(socket.socket(fileno=options.fd)).serve_forever()


if __name__ == "__main__":
    main()
