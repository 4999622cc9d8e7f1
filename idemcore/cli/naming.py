"""The one record that an operator means: by its key, scope and operation, or by a digest that a log shows.

What begins with ``#`` is a digest and never a key, for a key is the client's choice: one that spells another
record's digest would else stand in its place. ``--literal`` says that it is a key after all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, NamedTuple

import click

from idemcore.cli.options import Wrong, printable
from idemcore.cli.records import name_of, walk
from idemcore.engine import Engine
from idemcore.identity import DIGEST_DIGITS, SINGLE_TENANT, Identity, identify
from idemcore.record import Record, UnreadableRecord

_AT_LEAST: Final = 12
"""Digits of a digest that are taken for it. What happens to begin alike is told apart by more of them."""

_DIGITS: Final = re.compile(rf"[0-9a-fA-F]{{{_AT_LEAST},{DIGEST_DIGITS}}}")

_WANTED: Final = f"at least {_AT_LEAST} of its {DIGEST_DIGITS} hex digits"


class Asked(NamedTuple):
    """What was typed to name a record.

    Attributes:
        key: a key, or ``#`` and a digest or its beginning.
        scope: as given to the engine or as `ls` shows it; None where it was left out.
        operation: None where it was left out.
        literal: whether `key` is a key even if it begins with ``#``.
    """

    key: str
    scope: str | None
    operation: str | None
    literal: bool

    @property
    def identity(self) -> Identity:
        """What these name where `key` is a key."""
        operation = self.operation or "http"
        if self.scope is not None and self.scope.startswith("~"):  # as `ls` shows what is no plain text
            return Identity(self.scope, operation, self.key)
        return identify(SINGLE_TENANT if self.scope is None else self.scope, operation, self.key)


class Meant(NamedTuple):
    """The record that an operator asked for.

    Attributes:
        identity: of it.
        record: as it stands.
        key: the raw one, where the operator gave it.
    """

    identity: Identity
    record: Record | UnreadableRecord
    key: str | None


def identity_options(command: Callable[..., None]) -> Callable[..., None]:
    """KEY or a #DIGEST, ``--operation``, ``--scope`` and ``--literal``: the command takes them as `asked`."""

    @wraps(command)
    def asking(*, key: str, scope: str | None, operation: str | None, literal: bool, **given: Any) -> None:
        command(asked=Asked(key, scope, operation, literal), **given)

    offered = click.argument("key", metavar="KEY|#DIGEST")(asking)
    offered = click.option("--literal", is_flag=True, help="KEY is a key, even if it begins with #.")(offered)
    offered = click.option("--operation", help="Which kind of call; of a KEY http, where it is left out.")(
        offered
    )
    described = "Who asked, as given or as `ls` shows it; of a KEY SINGLE_TENANT, where it is left out."
    return click.option("--scope", help=described)(offered)


def meant(idem: Engine, asked: Asked) -> Meant:
    """The record that was asked for.

    Raises:
        Wrong: there is none, or a digest's beginning fits several.
    """
    if asked.key.startswith("#") and not asked.literal:
        return _by_digest(idem, asked)
    record = idem.get(asked.identity)
    if record is not None:
        return Meant(asked.identity, record, asked.key)
    where = "SINGLE_TENANT" if asked.scope is None else f"scope {asked.scope}"
    operation = asked.operation or "http"
    hint = (
        f"Did you mean '#{asked.key}'?"
        if _DIGITS.fullmatch(asked.key)
        else f"`ls` shows scopes, operations and digests; a digest is given as '#' and {_WANTED}."
    )
    raise Wrong(printable(f"There is no such record under {where} and operation {operation}. {hint}"))


def _by_digest(idem: Engine, asked: Asked) -> Meant:
    """All records are looked at, for a beginning that is found once may be another's too. What fits is kept:
    it is few, since each further digit takes sixteen times as many tries to meet.
    """
    digits = asked.key[1:].lower()
    if not _DIGITS.fullmatch(digits):
        raise Wrong(
            f"What begins with '#' is a digest, given with {_WANTED}. A key that begins so is given with "
            "--literal."
        )
    which = asked.identity
    records = walk(
        idem.store,
        scope=None if asked.scope is None else which.scope,
        operation=None if asked.operation is None else which.operation,
    )
    fitting = {found.identity for found in records if found.identity.digest.startswith(digits)}
    if len(fitting) > 1:
        names = "; ".join(sorted(map(name_of, fitting)))
        raise Wrong(f"Several records' digests begin so, give one of them whole: {names}")
    for identity in fitting:
        record = idem.get(identity)
        if record is not None:
            return Meant(identity, record, None)
    narrowed = "" if asked.scope is None and asked.operation is None else " of this scope and operation"
    raise Wrong(
        f"There is no such record{narrowed}: no digest begins so. `ls` shows digests; one that was swept or "
        "forgotten is gone. A key that begins with '#' is given with --literal."
    )
