"""A PostgreSQL server of a test's own, made with initdb in a temporary folder: it may be stopped and killed.

initdb refuses to run as root, so there the user `postgres` runs the server.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.stores.ports import free_port

_USER: Final = "postgres"
_PATIENCE: Final = 60.0


def binaries() -> Path | None:
    """Where initdb and postgres are; the newest where there are several."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name))
    whole = [place for place in places if (place / "initdb").exists() and (place / "postgres").exists()]
    return whole[-1] if whole else None


class PrivatePostgres:
    """One server. `port` stays the same over restarts."""

    def __init__(self, folder: Path, where: Path, *, copy_of: PrivatePostgres | None = None) -> None:
        self._folder = folder
        self._where = where
        self._server: subprocess.Popen[bytes] | None = None
        self.port: Final = free_port()
        data = ("-D", str(folder / "data"))
        if copy_of is None:
            self._run("initdb", *data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        else:
            self._run("pg_basebackup", *data, "-R", "-c", "fast", "-d", _dsn(copy_of.port))

    def url(self, *, port: int | None = None, driver: str = "psycopg") -> str:
        """For SQLAlchemy; `port` is that of a proxy before it."""
        return f"postgresql+{driver}://{_USER}@127.0.0.1:{port or self.port}/{_USER}"

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of the test's own, not through any proxy."""
        return psycopg.connect(_dsn(self.port), autocommit=True)

    def replica(self, folder: Path) -> PrivatePostgres:
        """A hot standby of this server; to be started and stopped by whoever asks for it."""
        made = PrivatePostgres(folder, self._where, copy_of=self)
        made.start()
        return made

    def start(self) -> None:
        """Returns when it takes connections. What a killed one left in memory of the system goes first."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_connections": 60,
            # The system survives in every test, so nothing is lost by not waiting for its disk.
            "fsync": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._where / "postgres"), "-D", str(self._folder / "data"), *options]
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._as_user())
        give_up_at = time.monotonic() + _PATIENCE
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self._server.poll() is not None or time.monotonic() > give_up_at:
                    raise
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: ends all sessions in good order ("fast"); SIGQUIT: at once, as a crash does."""
        server, self._server = self._server, None
        if server is not None:
            server.send_signal(how)
            server.wait(_PATIENCE)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Down and up again."""
        self.stop(how)
        self.start()

    def _run(self, command: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._where / command), *arguments],
            check=True,
            capture_output=True,
            timeout=_PATIENCE,
            cwd="/",
            **self._as_user(),
        )

    @staticmethod
    def _as_user() -> dict[str, Any]:
        return {"user": _USER, "group": _USER, "extra_groups": []} if os.geteuid() == 0 else {}


def _dsn(port: int) -> str:
    return f"postgresql://{_USER}@127.0.0.1:{port}/{_USER}"


@contextlib.contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that the server's user can reach and write, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="idemcore-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _USER, _USER)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def private_postgres() -> Iterator[PrivatePostgres]:
    """A server that runs, and is gone afterwards.

    Raises:
        LookupError: PostgreSQL's programs are not installed here.
    """
    where = binaries()
    if where is None:
        raise LookupError("PostgreSQL's own programs (initdb, postgres) are not installed")
    with server_folder() as folder:
        server = PrivatePostgres(folder, where)
        server.start()
        try:
            yield server
        finally:
            server.stop()
