"""The command line: a store's housekeeping, an operator's look at records, and why two requests differ.

Every command takes ``--json`` for programs. What goes wrong is one line on standard error, with exit
status 1 where trying again may help (the store is away, a record has moved on) and 2 where it cannot; no
traceback and no password is ever printed. Under ``--json`` that line is an object of two members, the text
``error`` and the number ``exit_status``. Status 1 is also that of a question answered with no, and of
``fingerprint --diff`` where two requests differ, as diff has it.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Runs the command that was typed; says in one line what is missing where the extra is not installed."""
    try:
        from idemcore.cli.main import commands
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "click":
            raise
        missing = "The command line needs click: pip install 'idemcore[cli]'"
        told = json.dumps({"error": missing, "exit_status": 2}) if "--json" in sys.argv else f"Error: {missing}"
        sys.stderr.write(f"{told}\n")
        raise SystemExit(2) from None
    commands(prog_name="idemcore")


__all__ = ["main"]
