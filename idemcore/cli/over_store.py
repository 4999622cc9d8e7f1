"""From ``--store`` to an engine: commands take an engine, and whoever offers them says where it comes from.

Here it comes from a URL, in the option or in IDEMCORE_STORE. `flask idemcore` offers the same commands over
the engine of an app.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from idemcore.cli.options import F, Wrong, table_options
from idemcore.engine import Engine
from idemcore.errors import ConfigurationError
from idemcore.stores.base import Store
from idemcore.stores.open import open_store


def taking(
    command: click.Command, engine: Callable[..., AbstractContextManager[Engine]], *options: str
) -> click.Command:
    """A command as it is offered somewhere: with an engine from there in place of its argument `idem`.

    Args:
        command: to offer; stays as it is.
        engine: opens one.
        *options: names of those that `engine` takes, and not the command.
    """
    does: Any = command.callback

    def run(**given: Any) -> Any:
        with engine(**{name: given.pop(name) for name in options}) as idem:
            return does(idem=idem, **given)

    offered = copy.copy(command)
    offered.params = list(command.params)
    offered.callback = run
    return offered


def over_store(command: click.Command, *, may_create: bool = False) -> click.Command:
    """The command with ``--store``, ``--table`` and ``--schema``.

    Args:
        command: takes the engine as `idem`.
        may_create: whether a SQLite file that is not there is made, and not taken for a mistyped path.
    """

    @contextmanager
    def engine(store: str, table: str | None, schema: str | None) -> Iterator[Engine]:
        if not may_create:
            _refuse_new_file(store)
        with closing(open_table(store, table, schema)) as opened, Engine(opened, observers=()) as idem:
            yield idem

    offered = table_options(taking(command, engine, "store", "table", "schema"))
    return store_option(required=True)(offered)


def store_option(*, required: bool) -> Callable[[F], F]:
    """``--store URL``, or the environment's IDEMCORE_STORE."""
    return click.option(
        "--store",
        required=required,
        envvar="IDEMCORE_STORE",
        metavar="URL",
        help="The store's URL, such as sqlite:///payments.db; IDEMCORE_STORE by default.",
    )


def open_table(url: str, table: str | None, schema: str | None) -> Store:
    """The store that a URL names, in its default table or in this one."""
    try:
        return open_store(url, table, schema)
    except ConfigurationError as error:
        raise ConfigurationError(f"--store, or IDEMCORE_STORE: {error}") from error


def _refuse_new_file(url: str) -> None:
    """A path that was mistyped would become an empty file, and an operator would find no record in it."""
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite" or not rest.startswith("/"):
        return
    name = rest[1:].partition("?")[0]
    path = Path(unquote(urlsplit(name).path) if name.startswith("file:") else name)
    if name and not path.exists():
        raise Wrong("There is no such SQLite file; `idemcore init-db` makes one where that is meant.")
