"""``flask idemcore …``: what the program ``idemcore`` does, over the app's own engine; no URL to repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from flask import current_app
from flask.cli import AppGroup, with_appcontext

from idemcore import Engine
from idemcore.cli.looking import ls, show, stats
from idemcore.cli.options import InOneLine
from idemcore.cli.over_store import taking
from idemcore.cli.schema import init_db
from idemcore.cli.sweeping import sweep
from idemcore.cli.verdicts import forget, release, resolve
from idemcore_flask.protection import settings_of


class _Commands(InOneLine, AppGroup):
    """Failures are one line, and an app is there."""


@contextmanager
def _engine() -> Iterator[Engine]:
    yield settings_of(current_app).engine


commands: Final = _Commands("idemcore", help="Housekeeping for idempotency records.")
for command in (init_db, sweep, ls, show, stats, resolve, release, forget):
    offered = taking(command, _engine)
    if offered.callback is not None:
        offered.callback = with_appcontext(offered.callback)
    commands.add_command(offered)
