"""Real servers on the loopback device, each started around an application and stopped after it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tests.adapters.shop import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
Serve = Callable[[str, Any], AbstractContextManager[int]]


@contextmanager
def werkzeug(station: str, app: Any) -> Iterator[int]:
    """Werkzeug's development server, with threads."""
    from werkzeug.serving import make_server as make_werkzeug_server

    server = make_werkzeug_server("127.0.0.1", 0, app, threaded=True, request_handler=_quiet_werkzeug())
    with _in_thread(server.serve_forever, server.shutdown):
        yield server.port
    server.server_close()


def _quiet_werkzeug() -> Any:
    from werkzeug.serving import WSGIRequestHandler as Handler

    class Quiet(Handler):
        def log(self, *_: Any) -> None:
            pass

    return Quiet


class _QuietWsgiref(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def get_stderr(self) -> Any:
        return _Nowhere()


class _Nowhere:
    def write(self, *_: Any) -> None:
        pass

    def flush(self) -> None:
        pass


@contextmanager
def wsgiref(station: str, app: Any) -> Iterator[int]:
    """The standard library's server: one request at a time, HTTP/1.0 answers."""
    server: WSGIServer = make_server("127.0.0.1", 0, app, handler_class=_QuietWsgiref)
    with _in_thread(server.serve_forever, server.shutdown):
        yield server.server_port
    server.server_close()


@contextmanager
def waitress(station: str, app: Any) -> Iterator[int]:
    """Waitress, with enough threads for the scenarios."""
    from waitress.server import create_server

    server: Any = create_server(app, host="127.0.0.1", port=0, threads=24)

    def stop() -> None:
        stopping.set()
        server.pull_trigger()

    def run() -> None:
        while not stopping.is_set():
            server.asyncore.loop(timeout=1, map=server._map, count=1)

    stopping = threading.Event()
    with _in_thread(run, stop):
        yield int(server.effective_port)
    server.task_dispatcher.shutdown()
    server.asyncore.close_all(server._map)


@contextmanager
def _in_thread(run: Callable[[], Any], stop: Callable[[], Any]) -> Iterator[None]:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(PATIENCE)


@contextmanager
def gunicorn_sync(station: str, app: Any) -> Iterator[int]:
    """Gunicorn with a process that serves one request at a time; one, for the shop counts in its memory."""
    with _gunicorn(station, "--workers", "1", "--worker-class", "sync") as port:
        yield port


@contextmanager
def gunicorn_gthread(station: str, app: Any) -> Iterator[int]:
    """Gunicorn with a process of many threads."""
    with _gunicorn(station, "--workers", "1", "--worker-class", "gthread", "--threads", "24") as port:
        yield port


@contextmanager
def _gunicorn(station: str, *options: str) -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        listener.set_inheritable(True)
        command = [sys.executable, "-m", "gunicorn", "--bind", f"fd://{listener.fileno()}", *options]
        command += ["--log-level", "critical", "--graceful-timeout", "1", "tests.adapters.served:app"]
        environment = {**os.environ, "SHOP_STATION": station, "PYTHONPATH": str(ROOT)}
        server = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=[listener.fileno()])
        try:
            yield listener.getsockname()[1]
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


SERVERS: dict[str, Serve] = {
    "werkzeug": werkzeug,
    "wsgiref": wsgiref,
    "waitress": waitress,
    "gunicorn-sync": gunicorn_sync,
    "gunicorn-gthread": gunicorn_gthread,
}
