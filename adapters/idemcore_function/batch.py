"""A batch is its items, each an operation of its own: run it again, or beside itself, and it goes on.

What is done is replayed, what another process has in hand is left to it and asked for again at the end,
and a stop lets every begun item settle. Nothing about the batch itself is stored.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType
from typing import Any, Final, TypeVar

from idemcore import ConfigurationError

from .decorator import operation_of
from .operation import Asked, Operation
from .report import Item, ProgressLine, Report
from .workload import Workload

T = TypeVar("T")
R = TypeVar("R")

_log: Final = logging.getLogger("idemcore")


def run_batch(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    workers: int = 4,
    max_failures: int | None = None,
    progress: bool | None = None,
) -> Report[T, R]:
    """Calls a decorated function once for each item, on threads.

    An item that fails is reported, and the batch goes on. Ctrl-C and SIGTERM begin no further item, wait
    until those under way are settled, log how far the batch came, and pass. The same batch may run in
    several processes at once: each item is run by one of them and, once it is done, replayed by the others.
    One that failed and may run again is run by each of them that comes to it.

    Args:
        function: decorated with @idempotent; a bound method or a partial of one will do.
        items: each is the first argument that is left open.
        workers: how many threads call the function.
        max_failures: begin no further item once so many have run here and failed, or are unknown since; for
            when a provider is down. A final failure is an answer, and does not count, nor does an item that was
            refused and so did not run. Where the store is away, which two items in a row find after some
            seconds of tries, none is begun whatever this says.
        progress: whether to show a line on standard error; by default where that is a terminal.

    Returns:
        The report, of all items in their order. Where a record could not be written it comes up to ten seconds
        later: until then it is tried again, and an item that has none even so is `unrecorded`.

    Raises:
        ConfigurationError: the function is not decorated, or two items have one key. Nothing was run.
        CallerError: an item has no key. Nothing was run.
        BaseException: what is no Exception and is raised by the function stops the batch and passes.
    """
    if workers < 1:
        raise ConfigurationError("run_batch needs at least one worker.")
    operation, first, named = operation_of(function)
    todo = _identified(operation, first, named, items)
    report = Report([item for item, _ in todo])
    workload = Workload(operation, first, named, todo, max_failures)
    threads = [
        threading.Thread(target=copy_context().run, args=(workload.work,), name=f"batch-{n}", daemon=True)
        for n in range(min(workers, len(report.items)))
    ]
    line = ProgressLine(report, progress)
    with _termination_as_exit():
        try:
            for thread in threads:
                thread.start()
            while not workload.ended(len(threads)):
                line.draw()
            workload.look_for_records()
        except BaseException as stopped:
            workload.settle()
            _log_stop(report, stopped)
            raise
        finally:
            line.draw(last=True)
    if workload.broken is not None:
        _log_stop(report, workload.broken)
        raise workload.broken
    return report


def _log_stop(report: Report[Any, Any], stopped: BaseException) -> None:
    """What is left of the report of a batch that does not return it."""
    _log.warning("batch stopped by %s with every begun item settled: %s", type(stopped).__name__, report)


def _identified(
    operation: Operation, first: tuple[Any, ...], named: dict[str, Any], items: Iterable[T]
) -> list[tuple[Item[T, Any], Asked]]:
    seen: dict[object, int] = {}
    identified = []
    for index, item in enumerate(items):
        try:
            asked = operation.read((*first, item), named)
        except TypeError as error:
            raise ConfigurationError(
                f"Item {index} does not fit {operation.namespace}: {error}. Each item is one argument: let the "
                "function take one object, or bind the other arguments with functools.partial."
            ) from error
        identity = asked.identity
        earlier = seen.setdefault(identity, index)
        if earlier != index:
            raise ConfigurationError(
                f"The items {earlier} and {index} have one key, so one of them would never run; nothing was "
                "run. Take the repeated item out, or put what tells them apart into the key."
            )
        identified.append((Item[T, Any](index, item, identity.digest), asked))
    return identified


@contextmanager
def _termination_as_exit() -> Iterator[None]:
    """SIGTERM, where it would end the process on the spot, becomes a SystemExit in the main thread."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # said once is enough, what is under way settles
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
