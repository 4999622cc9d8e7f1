"""Connections to a file at a fork: none is open in a child, whatever was under way."""

from __future__ import annotations

import os
import threading

import pytest

from idemcore.stores.sql.file_source import File

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),  # forking is what is tested
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Connection:
    """Says when it is being closed, and takes its time."""

    def __init__(self) -> None:
        self.open = True
        self.closing = threading.Event()

    def close(self) -> None:
        self.closing.set()
        threading.Event().wait(0.3)
        self.open = False


def open_in_child(*connections: Connection) -> int:
    child = os.fork()
    if child == 0:
        os._exit(sum(connection.open for connection in connections))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_waits_for_a_connection_that_is_being_closed() -> None:
    """SQL-04: given back as broken, it is lent until it is closed, so no child inherits it."""
    source = File(Connection)
    connection, taken = source.take()
    giving = threading.Thread(target=lambda: source.give(taken, broken=KeyboardInterrupt()))
    giving.start()
    assert connection.closing.wait(20)
    assert open_in_child(connection) == 0
    giving.join()


def test_a_fork_whose_wait_is_interrupted_waits_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL-04: the fork goes ahead whatever the hook raises, and idle connections are closed first."""
    source = File(Connection)
    connection, taken = source.take()
    source.give(taken)

    def interrupted() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(source, "_close_idle", interrupted)
    assert open_in_child(connection) == 0
    assert not source._door.locked()


def test_a_connection_that_cannot_be_opened_is_lent_to_nobody() -> None:
    """The error may be kept for long with its frames, and no fork waits for it."""

    def refuse() -> Connection:
        raise OSError("no such folder")

    source = File(refuse)
    with pytest.raises(OSError, match="folder") as caught:
        source.take()
    assert caught.value.__traceback__ is not None
    assert not source._out
