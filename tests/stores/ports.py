"""Ports for servers of a test's own, which keep theirs while they are down."""

from __future__ import annotations

import random
import socket

# Below what systems take for the near end of a connection, or one of these would have it while the server
# is down; and with room for the bus of a Redis cluster, 10,000 higher.
_PORTS = range(15_000, 32_000)


def free_port() -> int:
    """One that nobody listens on, here and now."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
