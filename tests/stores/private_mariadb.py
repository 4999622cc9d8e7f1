"""A MariaDB server of a test's own, made in a temporary folder: it may be stopped and killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pymysql

from tests.stores.ports import free_port

_PATIENCE: Final = 60.0


def binaries() -> tuple[str, str] | None:
    """What makes the folder, and the server; None where one of them is not installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    made = shutil.which("mariadb-install-db", path=path)
    server = shutil.which("mariadbd", path=path)
    return (made, server) if made and server else None


class PrivateMariaDB:
    """One server. `port` stays the same over restarts."""

    def __init__(self, folder: Path, install: str, server: str) -> None:
        self._folder = folder
        self._command = server
        self._server: subprocess.Popen[bytes] | None = None
        self.port: Final = free_port()
        subprocess.run(
            [
                install,
                "--no-defaults",
                f"--datadir={folder / 'data'}",
                "--auth-root-authentication-method=normal",
                *_as_user(),
            ],
            check=True,
            capture_output=True,
            timeout=_PATIENCE,
        )
        self.start()
        with pymysql.connect(host="127.0.0.1", port=self.port, user="root") as connection:
            connection.cursor().execute("CREATE DATABASE IF NOT EXISTS test")

    def url(self, *, port: int | None = None) -> str:
        """For SQLAlchemy; `port` is that of a proxy before it."""
        return f"mysql+pymysql://root@127.0.0.1:{port or self.port}/test"

    def start(self) -> None:
        """Returns when it takes connections."""
        command = [
            self._command,
            "--no-defaults",
            f"--datadir={self._folder / 'data'}",
            f"--socket={self._folder / 'socket'}",
            f"--pid-file={self._folder / 'pid'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-log-bin",
            # The system survives in every test, so nothing is lost by not waiting for its disk.
            "--innodb-flush-log-at-trx-commit=2",
            *_as_user(),
        ]
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log)
        give_up_at = time.monotonic() + _PATIENCE
        while True:
            try:
                pymysql.connect(host="127.0.0.1", port=self.port, user="root").close()
                return
            except pymysql.err.OperationalError:
                if self._server.poll() is not None or time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        """As a crash does."""
        server, self._server = self._server, None
        if server is not None:
            server.kill()
            server.wait(_PATIENCE)

    def restart(self) -> None:
        """Down and up again."""
        self.kill()
        self.start()


@contextlib.contextmanager
def private_mariadb() -> Iterator[PrivateMariaDB]:
    """A server for as long as the context lasts."""
    found = binaries()
    if found is None:
        raise LookupError("mariadb-install-db or mariadbd is not installed")
    with tempfile.TemporaryDirectory(prefix="idemcore-mariadb-") as name:
        server = PrivateMariaDB(Path(name), *found)
        try:
            yield server
        finally:
            server.kill()


def _as_user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []
