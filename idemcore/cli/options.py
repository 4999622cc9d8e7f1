"""What several commands take, how they answer, and what an error looks like to whoever typed one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from idemcore.errors import IdempotencyError, TryLater


class Wrong(click.ClickException):
    """What trying again cannot put right: exit status 2."""

    exit_code = 2


class MayHelpLater(click.ClickException):
    """What may be otherwise the next time: exit status 1."""

    exit_code = 1


class InOneLine(click.Group):
    """Commands whose failures are one line and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except TryLater as error:
            raise MayHelpLater(_line(error)) from error
        except (IdempotencyError, ImportError) as error:
            raise Wrong(_line(error)) from error


COUNT = click.IntRange(1, 2**31 - 1)
"""Of records: more than any table holds, and what every database takes as a number."""

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """``--json``: the answer as one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(command)


def table_options(command: F) -> F:
    """``--table`` and ``--schema``, as `idempotency_table` takes them."""
    command = click.option("--schema", envvar="IDEMCORE_SCHEMA", help="The schema that holds it.")(command)
    named = "The table, where it has another name than idempotency_records."
    return click.option("--table", envvar="IDEMCORE_TABLE", help=named)(command)


def answer(as_json: bool, document: object, text: str) -> None:
    """Prints the document for programs, or the text for people."""
    click.echo(json.dumps(document) if as_json else text)


def printable(text: str) -> str:
    """What a client or an application wrote, without what a terminal would obey."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
