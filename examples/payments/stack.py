"""Everything that takes payments, started: the network, the app behind gunicorn, a proxy before it."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from processes import LOOPBACK, CannotRun, last_words, listen, running
from proxy import Proxy, proxying

TENANTS = {"acme-token": "acme", "globex-token": "globex"}
PATIENCE = 20.0  # seconds that the app may take to come up


@dataclass(frozen=True)
class Stack:
    """A running set of processes and the files that they write."""

    directory: Path
    network_port: int
    app_port: int
    proxy: Proxy
    server: subprocess.Popen[bytes]

    @property
    def ledger(self) -> Path:
        return self.directory / "ledger.jsonl"

    @property
    def asked(self) -> Path:
        return self.directory / "asked.jsonl"

    @property
    def notices(self) -> Path:
        return self.directory / "notices.jsonl"

    @property
    def database(self) -> Path:
        return self.directory / "payments.db"


@contextlib.contextmanager
def started(directory: Path, *, protected: bool = True, lease: float = 30.0, port: int = 0) -> Iterator[Stack]:
    """The processes, started; call `wait_until_up` before the first request."""
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as ends:
        listening = ends.enter_context(listen(port))
        network = ends.enter_context(listen())
        network_port = network.getsockname()[1]
        ends.enter_context(
            running(
                ["network.py", "--directory", str(directory), "--fd", str(network.fileno())],
                directory / "network.log",
                listening=network,
            )
        )
        app_port = listening.getsockname()[1]
        server = ends.enter_context(
            running(
                ["-m", "gunicorn", "--bind", f"fd://{listening.fileno()}", "app:app"],
                directory / "app.log",
                listening=listening,
                environment={
                    "PAYMENTS_DATABASE": str(directory / "payments.db"),
                    "PAYMENTS_NETWORK": f"http://{LOOPBACK}:{network_port}",
                    "PAYMENTS_TENANTS": json.dumps(TENANTS),
                    "PAYMENTS_IDEMCORE_ENABLED": json.dumps(protected),
                    "PAYMENTS_LEASE": json.dumps(lease),
                    "NO_PROXY": LOOPBACK,
                },
            )
        )
        proxy = ends.enter_context(proxying(app_port))
        # Ours are closed now: a port whose server is gone must refuse, not queue.
        listening.close()
        network.close()
        yield Stack(directory, network_port, app_port, proxy, server)


def wait_until_up(stack: Stack) -> None:
    """Returns when the app answers; a CannotRun carries the last line of its log."""
    deadline = time.monotonic() + PATIENCE
    while stack.server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(LOOPBACK, stack.app_port, timeout=PATIENCE)
            connection.request("GET", "/payments/none")
            connection.getresponse().read()
            connection.close()
            return
        time.sleep(0.05)
    raise CannotRun(f"the payments app did not come up: {last_words(stack.directory / 'app.log')}")
