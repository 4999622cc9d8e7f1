"""``ls``, ``show`` and ``stats``: what an operator sees, which changes nothing.

Answers' bodies are shown only when asked for, and a key only where the operator gave it.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
from collections import Counter
from typing import Final

import click

from idemcore.cli.naming import Asked, identity_options, meant
from idemcore.cli.options import COUNT, answer, json_option, printable
from idemcore.cli.records import (
    ABANDONED,
    STATES,
    UNANSWERED,
    UNREADABLE,
    facts,
    state_of,
    walk,
)
from idemcore.engine import Engine
from idemcore.record import Found, Record, State


@click.command()
@click.option("--scope", help="Of this scope only, as the store writes it.")
@click.option("--operation", help="Of this operation only.")
@click.option("--state", type=click.Choice(STATES), help="In this state only.")
@click.option("--open", "only_open", is_flag=True, help="Only what nobody has ended.")
@click.option("--limit", default=50, show_default=True, type=COUNT, help="At most so many.")
@json_option
def ls(
    idem: Engine,
    scope: str | None,
    operation: str | None,
    state: str | None,
    only_open: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List records, oldest claim first. A record is named by its digest, which `show` and `resolve` take; the
    key is not shown. Who knows the key needs no list: `show KEY`, with its scope and operation.

    A claim whose lease is over is shown as abandoned: its run was killed, or is late, or still has the
    transaction open that it has joined (join), which keeps everybody else out, an operator too. Where it died
    after its transaction was committed and before its answer was recorded, it is unanswered.

    --open lists unknown outcomes, abandoned claims, unanswered records and what cannot be read. An unknown
    outcome, an abandoned claim with hold and an unanswered record wait for `resolve`. An abandoned claim
    without hold is settled by a retry, if it comes: it runs the work again, unless the retry's own policy is
    on_abandoned="block", which leaves it to `resolve`.
    """
    records = walk(idem.store, scope=scope, operation=operation, state=state, only_open=only_open)
    matching = itertools.count()
    oldest = heapq.nlargest(limit, (found for found, _ in zip(records, matching, strict=False)), key=_age)
    rows = [facts(found.identity, found.record, found.kind, found.body_bytes) for found in oldest]
    if as_json:
        click.echo(json.dumps(rows))
    else:
        _print(rows)
    left_out = next(matching) - len(rows)
    if left_out > 0:
        click.echo(f"{left_out} more: see --limit", err=True)


@click.command()
@identity_options
@click.option("--body", "with_body", is_flag=True, help="Show the kept answer too; it may hold secrets.")
@json_option
def show(idem: Engine, asked: Asked, with_body: bool, as_json: bool) -> None:
    """Show the record under KEY, or the one that a #DIGEST of a log or of `ls` names.

    The beginning of a digest is enough, 12 digits or more, where one record fits. For it all records are
    looked at, of --scope and --operation alone where these are given.
    """
    identity, record, given = meant(idem, asked)
    kept = record.answer if isinstance(record, Record) else None
    told = facts(identity, record) if kept is None else facts(identity, record, kept.kind, len(kept.body))
    if given is not None:
        told = {"key": given, **told}
    if with_body and kept is not None:
        told["meta"] = kept.meta.decode(errors="replace")
        told["body"] = kept.body.decode(errors="replace")
    texts = {name: str(value).removesuffix("\n") for name, value in told.items() if value is not None}
    answer(as_json, told, "\n".join(f"{name}: {printable(text)}" for name, text in texts.items()))


@click.command()
@click.option("--scope", help="Of this scope only, as the store writes it.")
@click.option("--operation", help="Of this operation only.")
@json_option
def stats(idem: Engine, scope: str | None, operation: str | None, as_json: bool) -> None:
    """Count the records, by state, and say what waits: for an operator, and for the next sweep.

    Every record is looked at, though not its answer.
    """
    states: Counter[str] = Counter()
    waiting = past = body_bytes = 0
    oldest = None
    for found in walk(idem.store, scope=scope, operation=operation):
        state = state_of(found.record)
        states[state] += 1
        body_bytes += found.body_bytes or 0
        if isinstance(found.record, Record):
            past += found.record.forgettable
            if state in (ABANDONED, UNANSWERED, State.UNKNOWN):
                waiting += found.record.hold or state == UNANSWERED
                oldest = max(oldest or 0.0, found.record.age)
    told = {
        "records": states.total(),
        "states": {state: states[state] for state in STATES},
        "waiting_for_operator": waiting + states[UNREADABLE],
        "waiting_for_sweep": past,
        "oldest_open_age": None if oldest is None else round(oldest, 3),
        "body_bytes": body_bytes,
    }
    lines = [f"{name}: {value}" for name, value in told.items() if name != "states" and value is not None]
    lines += [f"  {state}: {count}" for state, count in states.most_common()]
    answer(as_json, told, "\n".join(lines))


def _age(found: Found) -> float:
    """Seconds since the claim; what cannot be read counts as the oldest, so that no limit hides it."""
    return found.record.age if isinstance(found.record, Record) else math.inf


def _print(rows: list[dict[str, object]]) -> None:
    """A table of plain text: as wide as what stands in it, so that no terminal and no pipe cuts a digest."""
    cells = [_TITLES, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


_TITLES: Final = ("digest", "scope", "operation", "state", "hold", "attempt", "age")


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    age = row.get("age")
    cells = (
        f"#{row['digest']}",
        str(row["scope"]),
        str(row["operation"]),
        str(row["state"]),
        "hold" if row.get("hold") else "",
        str(row.get("attempt", "")),
        f"{age:.0f} s" if isinstance(age, float) else "",
    )
    return tuple(map(printable, cells))
