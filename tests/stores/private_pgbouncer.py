"""A PgBouncer of a test's own, before the tests' PostgreSQL: each transaction gets the next of its sessions."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from sqlalchemy import URL, make_url

from tests.stores.ports import free_port
from tests.stores.private_postgres import server_folder

SERVER: Final = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_PATIENCE: Final = 60.0


@contextlib.contextmanager
def private_pgbouncer(server: str, *, sessions: int) -> Iterator[URL]:
    """The URL of the same database through a pooler with so many sessions there.

    Args:
        server: URL of the database, for SQLAlchemy.
        sessions: of the server that all clients share.

    Raises:
        LookupError: PgBouncer is not installed.
    """
    if SERVER is None:
        raise LookupError("pgbouncer is not installed")
    to = make_url(server)
    port = free_port()
    place = {"host": to.host, "port": to.port or 5432, "dbname": to.database, "user": to.username}
    if to.password:
        place["password"] = to.password
    with server_folder() as folder:
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n{to.database} = {' '.join(f'{name}={value}' for name, value in place.items())}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = transaction\ndefault_pool_size = {sessions}\n"
            f"server_round_robin = 1\nlogfile = {folder / 'log'}\n"
        )
        process = subprocess.Popen([SERVER, "-q", str(settings)], cwd="/", **_as_user())
        through = to.set(host="127.0.0.1", port=port)
        try:
            _await(through)
            yield through
        finally:
            process.kill()
            process.wait(_PATIENCE)


def _await(url: URL) -> None:
    give_up_at = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(url.set(drivername="postgresql").render_as_string(hide_password=False)).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.02)


def _as_user() -> dict[str, Any]:
    """It refuses to run as root."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
