"""Two worker processes with sixteen threads each."""

import os
import signal

from processes import end_with_parent

preload_app = True
workers = 2
worker_class = "gthread"
threads = 16
graceful_timeout = 1
control_socket_disable = True


def when_ready(server: object) -> None:
    end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
