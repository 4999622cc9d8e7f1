"""The group of all commands."""

from __future__ import annotations

import click

from idemcore.cli.fingerprints import fingerprint
from idemcore.cli.looking import ls, show, stats
from idemcore.cli.options import InOneLine
from idemcore.cli.over_store import over_store
from idemcore.cli.schema import ddl, init_db
from idemcore.cli.sweeping import sweep
from idemcore.cli.verdicts import forget, release, resolve


@click.group(cls=InOneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="idemcore")
def commands() -> None:
    """Housekeeping for idempotency records, and a look at what makes two requests differ."""


commands.add_command(over_store(init_db, may_create=True))
for command in (sweep, ls, show, stats, resolve, release, forget):
    commands.add_command(over_store(command))
for command in (ddl, fingerprint):
    commands.add_command(command)
