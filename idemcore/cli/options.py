"""What several commands take, how they answer, and what an error looks like to whoever typed one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from idemcore.errors import IdempotencyError, TryLater


class Wrong(click.ClickException):
    """What trying again cannot put right: exit status 2."""

    exit_code = 2


class MayHelpLater(click.ClickException):
    """What may be otherwise the next time: exit status 1."""

    exit_code = 1


class InOneLine(click.Group):
    """Commands whose failures are one line and an exit status; under ``--json`` that line is JSON."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads what stands before the command's name."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name != "--json":
                raise
            _fail_in_json(f"--json goes behind the command: {ctx.command_path} ls --json", 2)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        as_json = "--json" in ctx.args  # looked for here, since a command that is typed wrongly has no options
        try:
            return _invoked(super().invoke, ctx)
        except click.ClickException as error:
            if not as_json:
                raise
            _fail_in_json(error.format_message(), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            if not as_json:
                raise
            click.echo(err=True)  # the cursor stands behind the question, or behind ^C
            _fail_in_json("Aborted!", 1)


def _invoked(invoke: Callable[[click.Context], Any], ctx: click.Context) -> Any:
    try:
        return invoke(ctx)
    except TryLater as error:
        raise MayHelpLater(_line(error)) from error
    except (IdempotencyError, ImportError) as error:
        raise Wrong(_line(error)) from error


def _fail_in_json(message: str, exit_status: int) -> NoReturn:
    """On standard error, as in words: standard output holds answers only."""
    click.echo(json.dumps({"error": message, "exit_status": exit_status}), err=True)
    raise click.exceptions.Exit(exit_status)


COUNT = click.IntRange(1, 2**31 - 1)
"""Of records: more than any table holds, and what every database takes as a number."""

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """``--json``: the answer as one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON, failures too.")(command)


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
