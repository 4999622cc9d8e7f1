"""What a report says of itself, and the line that shows how far a batch is where nobody can read it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from idemcore import Engine
from idemcore_function import idempotent, run_batch


class Gone(io.StringIO):
    """Standard error as a pipe whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [lambda: None, closed, Gone], ids=["none", "closed", "broken pipe"])
@pytest.mark.parametrize("progress", [None, True])
def test_a_batch_runs_where_progress_cannot_be_shown(
    idem: Engine, monkeypatch: pytest.MonkeyPatch, stream: Callable[[], Any], progress: bool | None
) -> None:
    """A daemon without standard error: every item is done, and what stops a batch is what is raised."""

    @idempotent(idem, key="{n}", namespace="sends")
    def send(n: int) -> int:
        return n

    monkeypatch.setattr(sys, "stderr", stream())
    assert run_batch(send, range(3), progress=progress).complete

    @idempotent(idem, key="{n}", namespace="stopped")
    def stop(n: int) -> None:
        raise SystemExit(7)

    with pytest.raises(SystemExit) as stopped:
        run_batch(stop, [1], progress=progress)
    assert stopped.value.code == 7


def test_a_report_shows_its_counts_and_no_item(idem: Engine) -> None:
    """In a log, a debugger and an empty batch too."""

    @idempotent(idem, key="{name}", namespace="sends")
    def send(name: str) -> str:
        return name

    assert repr(run_batch(send, ["secret", "other"], progress=False)) == "Report(2 items: 2 done)"
    assert repr(run_batch(send, [], progress=False)) == "Report(0 items: none)"
