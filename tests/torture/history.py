"""What a torture run leaves behind: JSON lines, one file for each process, and one ledger of effects.

Every line is written at once with one system call, so a killed process loses none. Times are of
CLOCK_MONOTONIC, which all processes of a machine share. Tokens stand as digests.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def digest(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()[:12]


class Diary:
    """Where one process, or one thread, writes what it does."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._ledger = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._history = os.open(folder / f"{name}.history", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._numbers = itertools.count(1)

    def write(self, what: str, **facts: Any) -> int:
        """One line; returns its number, for the line that answers it."""
        number = next(self._numbers)
        line = {"what": what, "number": number, "at": time.monotonic(), **facts}
        os.write(self._history, json.dumps(line).encode() + b"\n")
        return number

    def effect(self, key: str, token: str, fingerprint: str) -> None:
        """The one thing that must not happen twice."""
        line = {"key": key, "token": token, "fingerprint": fingerprint, "at": time.monotonic()}
        os.write(self._ledger, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self._ledger)
        os.close(self._history)


@dataclass(frozen=True)
class Verb:
    """One step of a store's. `came` is None where nobody learned what it did: it may have been done, or be yet.

    Attributes:
        result: "inserted", "own", "found"; True, False; "stored", "superseded"; seconds left; None.
        error: class of what it raised.
        outcome: of `complete`: "answer" or "tombstone".
        to: of `release` and `resolve`.
    """

    process: str
    name: str
    key: str
    sent: float
    came: float | None = None
    token: str = ""
    seen: str = ""
    fingerprint: str = ""
    attempt: int = 0
    hold: bool = False
    lease: float = 0.0
    max_hold: float = 0.0
    retention: float = 0.0
    to: str = ""
    outcome: str = ""
    result: Any = None
    error: str = ""


@dataclass(frozen=True)
class Call:
    """One request, from its caller's side. `answered` is None where the process died on the way.

    Attributes:
        answer: "ran", "replay", "given" (a late run's, instead of its own), or a refusal's code.
        body: of a replay or of what was given: the token, fingerprint and key that were recorded in it.
    """

    process: str
    key: str
    fingerprint: str
    invoked: float
    answered: float | None = None
    answer: str = ""
    token: str = ""
    body: dict[str, Any] | None = None


@dataclass(frozen=True)
class Effect:
    """A line of the ledger."""

    key: str
    token: str
    fingerprint: str
    at: float


@dataclass(frozen=True)
class Order:
    """A row that was committed together with its record's mark."""

    key: str
    token: str


@dataclass
class History:
    """All that is known of one run."""

    verbs: list[Verb] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    deeds: list[tuple[float, str]] = field(default_factory=list)
    """What was done to the processes and the server, and when."""


def read(folder: Path) -> History:
    """Puts the lines of all processes together."""
    history = History()
    for path in sorted(folder.glob("*.history")):
        begun: dict[int, dict[str, Any]] = {}
        ended: dict[int, dict[str, Any]] = {}
        for line in _lines(path):
            if line["what"] == "deed":
                history.deeds.append((line["at"], line["name"]))
            elif line["what"] in ("came", "answered"):
                ended[line.pop("of")] = line
            else:
                begun[line["number"]] = line
        for number, line in begun.items():
            what, _, at = line.pop("what"), line.pop("number"), line.pop("at")
            end = ended.get(number, {})
            until, facts = end.get("at"), {**line, **_without(end)}
            if what == "sent":
                history.verbs.append(Verb(process=path.stem, sent=at, came=until, **facts))
            else:
                history.calls.append(Call(process=path.stem, invoked=at, answered=until, **facts))
    history.effects += [Effect(**line) for line in _lines(folder / "effects")]
    history.orders += [Order(**line) for line in _lines(folder / "orders")]
    history.verbs.sort(key=lambda verb: verb.sent)
    history.calls.sort(key=lambda call: call.invoked)
    history.effects.sort(key=lambda effect: effect.at)
    history.deeds.sort()
    return history


def _without(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in ("what", "number", "at")}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines() if path.exists() else ():
        yield json.loads(line)
