"""``sweep``: what a cron job calls."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from idemcore.cli.options import COUNT, json_option
from idemcore.cli.records import name_of
from idemcore.engine import Engine
from idemcore.identity import Identity


@click.command()
@click.option("--batch", type=COUNT, help="Records a batch; 100 on SQLite by default, 1000 elsewhere.")
@json_option
def sweep(idem: Engine, batch: int | None, as_json: bool) -> None:
    """Remove records past their retention, in batches. Call it from cron, each hour or each day.

    Several at once share the work. SIGTERM ends it after the batch in hand. An abandoned claim is a run
    that nobody finished: each may hide an effect that was never recorded, so each is named.
    """
    finished = 0
    lost: list[Identity] = []
    with _stopped_by_sigterm() as stopped, _progress() as show:
        for swept in idem.sweep_batches(batch=batch):
            finished += swept.finished
            lost += swept.lost
            show(finished + len(lost))
            if stopped():
                break
        was_stopped = stopped()
    if as_json:
        names = [
            {"digest": identity.digest, "scope": identity.scope, "operation": identity.operation}
            for identity in lost
        ]
        document = {"finished": finished, "abandoned": len(lost), "stopped": was_stopped, "lost": names}
        click.echo(json.dumps(document))
        return
    for identity in lost:
        click.echo(f"abandoned: {name_of(identity)}")
    early = ", stopped early" if was_stopped else ""
    click.echo(f"removed {finished} finished and {len(lost)} abandoned{early}")


@contextmanager
def _stopped_by_sigterm() -> Iterator[Callable[[], bool]]:
    """Says whether SIGTERM has come, which ends nothing by itself meanwhile."""
    came = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Shows on a terminal how far it is, on one line that is gone in the end."""
    shows = sys.stderr.isatty()

    def show(removed: int) -> None:
        if shows:
            click.echo(f"\r{removed} removed", nl=False, err=True)

    try:
        yield show
    finally:
        if shows:
            click.echo("\r\x1b[K", nl=False, err=True)
