"""Child processes that never outlive us, and sockets that are bound before anyone needs the port.

A child leads a process group of its own, so that it and its workers end together, and holds the reading
end of a pipe that nobody writes to: when we are gone, however we went, the pipe ends and so does the child.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

LOOPBACK = "127.0.0.1"
BACKLOG = 256


class CannotRun(Exception):
    """Something outside the demo is in the way; the message is one line for the person at the terminal."""


def listen(port: int = 0) -> socket.socket:
    """A listening loopback socket; port 0 takes any free one."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotRun(
                f"port {port} is taken by another process: stop it (an earlier server still running?)"
                " or choose another with --port"
            ) from error
        raise CannotRun(f"cannot listen on {LOOPBACK}:{port}: {error.strerror}") from error
    return listening


@contextlib.contextmanager
def running(
    command: Sequence[str],
    log: Path,
    *,
    listening: socket.socket | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """The command, running; its whole process group is ended on the way out."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, *command],
            cwd=Path(__file__).parent,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            pass_fds=() if listening is None else (listening.fileno(),),
            start_new_session=True,
        )
    try:
        yield child
    finally:
        end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and everything in its group, stopped processes included."""
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
        os.killpg(child.pid, signal.SIGCONT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=3)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        # Workers whose master is gone are reaped by init; a second is plenty, and where nobody reaps
        # them, nothing of them is left but their names.
        for _ in range(50):
            os.killpg(child.pid, 0)
            time.sleep(0.02)
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def last_words(log: Path) -> str:
    """The last line that a child wrote, for an error message."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def end_with_parent(finish: Callable[[], object] = lambda: os._exit(0)) -> None:
    """Called in a child: runs `finish` when the parent is gone."""

    def wait() -> None:
        # os.read, not sys.stdin: a buffered reader would hold a lock that the interpreter wants at exit.
        while os.read(0, 1):
            pass
        finish()

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()
