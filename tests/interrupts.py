"""A signal's exception at a chosen moment, or at a chosen step, inside a block and never behind it."""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupt(BaseException):
    """What no code catches by accident."""


class Interrupts:
    """Raises `error` from SIGALRM's handler once the time that `arm` was given is over, until `disarm`.

    A timer that is taken back may already have gone off, and its signal may come some calls later; the
    handler then lets it pass.
    """

    def __init__(self, error: type[BaseException] = Interrupt) -> None:
        self._error = error
        self._armed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGALRM, self._strike)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGALRM, self._before)

    def arm(self, seconds: float) -> None:
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm(self) -> None:
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _strike(self, *_: Any) -> None:
        if self._armed:
            self._armed = False
            raise self._error


class Steps:
    """Raises `Interrupt` at the n-th step of Python code within some folders: each line and each return is one.

    So every place where a signal's exception may strike is tried, one after another; `struck` tells whether
    there was an n-th. Finalizers are left out, for what is raised there goes nowhere.

    Args:
        nth: which step, from 1.
        folders: parts of the paths of files that count.
    """

    def __init__(self, nth: int, folders: tuple[str, ...]) -> None:
        self._left = nth
        self._folders = folders
        self.struck = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._entered)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.settrace(self._before)

    def _entered(self, frame: FrameType, *_: Any) -> Any:
        code = frame.f_code
        counts = any(folder in code.co_filename for folder in self._folders) and code.co_name != "__del__"
        return self._step if counts and not self.struck else None

    def _step(self, _: FrameType, event: str, __: Any) -> Any:
        if event in ("line", "return") and not self.struck:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                sys.settrace(None)
                raise Interrupt
        return self._step
