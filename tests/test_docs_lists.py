"""Lists in docs/ are those of the code: events to watch, commands, policies with their defaults."""

from __future__ import annotations

import logging
import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

from idemcore import Policy, events
from idemcore.cli.main import commands

DOCS = Path(__file__).parent.parent / "docs"


def test_every_event_to_watch_is_described() -> None:
    """At its level, from WARNING upwards; what is quieter is nobody's to watch."""
    watched = {
        name: logging.getLevelName(event.level)
        for name, event in vars(events).items()
        if isinstance(event, type) and issubclass(event, events.Event) and event.level >= logging.WARNING
    }
    described = {}
    for names, levels in re.findall(
        r"^\| (`.+`) \| ([A-Z, ]+) \|", (DOCS / "operator.md").read_text(), re.MULTILINE
    ):
        found = re.findall(r"\w+", names)
        each = levels.split(", ")
        described.update(zip(found, each if len(each) > 1 else each * len(found), strict=True))
    assert described == watched


def test_every_command_is_described() -> None:
    """In the table of an operator's commands, or beside another in its row."""
    rows = re.findall(r"^\| `idemcore (.+?) \|", (DOCS / "operator.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"^[\w-]+|(?<=, `)[\w-]+", row)}
    assert named | {"sweep"} == set(commands.commands)  # which has a section of its own


def test_every_policy_has_its_default_and_its_reason() -> None:
    """In the order of the code."""
    times = {
        "24 hours": timedelta(hours=24),
        "30 seconds": timedelta(seconds=30),
        "10 minutes": timedelta(minutes=10),
    }
    meanings = {**times, "zero": timedelta(0), "nothing": ()}
    rows = re.findall(
        r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", (DOCS / "policies.md").read_text(), re.MULTILINE
    )
    options = [field.name for field in fields(Policy) if field.init]
    assert [name for name, _, _ in rows] == options
    defaults = {name: meanings.get(text, text.strip('`"')) for name, text, _ in rows}
    assert defaults == {name: getattr(Policy(), name) for name in options}
