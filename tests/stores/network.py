"""A network between a store and its server, that does on request what networks do by themselves.

It forwards bytes in both directions and knows nothing of what they mean. Connections can be cut after a
given number of bytes, delayed, or accepted and never answered.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, Literal

Direction = Literal["there", "back"]
"""To the server, and from it."""

_Pair = tuple[socket.socket, socket.socket]

_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close sends a reset, as a broken path does


class Network:
    """Forwards 127.0.0.1:`port` to the server's port.

    Attributes:
        sent: bytes forwarded so far, by direction.
        pieces: the same in pieces, as they came.
        cuts: how often connections were cut on request.
        delay: seconds that every piece takes, in each direction.
        silent: whether new connections are accepted and nothing of them is forwarded.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._cuts_due: dict[Direction, list[int]] = {}
        self.sent: Counter[Direction] = Counter()
        self.pieces: Counter[Direction] = Counter()
        self.cuts = 0
        self.delay = 0.0
        self.silent = False
        self._door = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: Final[int] = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, direction: Direction, *counts: int) -> None:
        """Lets so many more bytes through this way and cuts every connection; then likewise the next."""
        with self._lock:
            self._cuts_due[direction] = [self.sent[direction] + count for count in accumulate(counts)]

    def mend(self) -> None:
        """No cut is due any more."""
        with self._lock:
            self._cuts_due.clear()

    def cut(self) -> None:
        """Cuts every connection now."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                _break(end)

    def close(self) -> None:
        """No more of it."""
        _break(self._door)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        if self.silent:
            with self._lock:
                self._pairs.add((near, near))
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._server_port), timeout=10)
        except OSError:
            _break(near)
            return
        far.settimeout(None)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (near, far)
        with self._lock:
            self._pairs.add(pair)
        threading.Thread(target=self._pump, args=(far, near, "back", pair), daemon=True).start()
        self._pump(near, far, "there", pair)

    def _pump(
        self,
        source: socket.socket,
        target: socket.socket,
        way: Direction,
        pair: _Pair,
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                if self.delay:
                    time.sleep(self.delay)
                while self.silent:
                    time.sleep(0.01)
                with self._lock:
                    due = self._cuts_due.get(way)
                    if cutting := bool(due) and due[0] <= self.sent[way] + len(piece):
                        piece = piece[: max(due.pop(0) - self.sent[way], 0)]
                        self.cuts += 1
                    self.sent[way] += len(piece)
                    self.pieces[way] += 1
                target.sendall(piece)
                if cutting:
                    self.cut()
        with self._lock:
            self._pairs.discard(pair)
        for end in pair:
            _end(end)


def _break(end: socket.socket) -> None:
    """As a broken path does it; whoever reads wakes up."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    _end(end)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextlib.contextmanager
def network(server_port: int) -> Iterator[Network]:
    """A network that is there for a while."""
    made = Network(server_port)
    try:
        yield made
    finally:
        made.close()
