"""What a forked child must make anew: objects register here, weakly, and are told of every fork.

A lock that another thread held at the moment of the fork stays locked in the child for ever, and a
socket that two processes share garbles both. One set of hooks serves every registered object, so that
making many of them leaves nothing behind.

A fork goes ahead whatever a hook raises, be it Ctrl-C. So what an interrupt breaks off is tried once more,
no object's trouble is another's, and a child tells all, whether or not its parent had brought them to rest.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

left_to_parent: Final[list[object]] = []
"""Connections and pools that a fork brought along: kept from the garbage collector, which would close the
parent's sessions, or wait for a lock that one of its threads held.
"""


class Forkable:
    """Something that a fork would leave in an unusable state."""

    def at_rest(self) -> Generator[None]:
        """At rest while it is suspended, such as inside a ``with`` block of its own lock.

        A generator, because what it holds is then exactly what closing it gives back, wherever an
        interrupt has struck. This one has nothing to bring to rest.
        """
        yield from ()

    def start_in_child(self) -> None:
        """Starts anew in a child, whose parent may not have been at rest."""
        raise NotImplementedError


class _Resting(threading.local):
    """What the fork that this thread makes has brought to rest."""

    def __init__(self) -> None:
        self.all: list[Generator[None]] = []


_registered: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()
_forking: threading.Lock = threading.Lock()
_resting: Final = _Resting()


def register(thing: Forkable) -> None:
    """Tells `thing` of forks for as long as it lives; it is held weakly."""
    with _forking:
        _registered.add(thing)


def _one_at_a_time() -> Generator[None]:
    # Two forks that take the same locks in different orders would wait for each other.
    with _forking:
        yield


def _bring_to_rest(at_rest: Callable[[], Generator[None]]) -> None:
    resting = at_rest()
    _resting.all.append(resting)  # first: what it holds by an interrupt's time is given back all the same
    next(resting, None)


def _before() -> None:
    _each(_bring_to_rest, [_one_at_a_time])
    _each(_bring_to_rest, [thing.at_rest for thing in list(_registered)])


def _after_in_parent() -> None:
    resting, _resting.all = _resting.all[::-1], []
    _each(lambda one: one.close(), resting)


def _after_in_child() -> None:
    global _forking
    _forking = threading.Lock()
    _each(lambda thing: thing.start_in_child(), list(_registered))
    _after_in_parent()  # of locks that nobody uses any more


def _each(act: Callable[[T], None], things: Iterable[T]) -> None:
    """Acts on all, and raises the last error at the end, for the interpreter to report."""
    failed: BaseException | None = None
    for thing in things:
        try:
            act(thing)
        except BaseException as error:
            failed = error
            try:
                act(thing)
            except BaseException as again:
                failed = again
    if failed is not None:
        raise failed


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
