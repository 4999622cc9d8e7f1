"""Ports for servers of a test's own, which keep theirs while they are down."""

from __future__ import annotations

import random
import socket

# A node of a Redis cluster takes a second port for its bus, so much higher than its own.
_BUS = 10_000

# Below what systems take for the near end of a connection, the bus too: one of these would have it otherwise,
# at any time for the bus, and for the port itself while its server is down.
_PORTS = range(15_000, 32_768 - _BUS)


def free_port() -> int:
    """One that nobody listens on, here and now, and whose bus is as free."""
    while True:
        port = random.choice(_PORTS)
        if _is_free(port) and _is_free(port + _BUS):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
