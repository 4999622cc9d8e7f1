"""README and docs/speed.md print what was measured: each figure stands in benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "speed.md").read_text()


def results(file: str) -> dict[str, Any]:
    """What a benchmark left behind when it was last run in full."""
    read: dict[str, Any] = json.loads((RESULTS / file).read_text())
    return read


def ratios(file: str, *groups: str) -> dict[str, list[str]]:
    """By contender, the ratios of the measured groups as README prints them."""
    measured = results(file)["groups"]
    rows: dict[str, list[str]] = {}
    for group in groups:
        for row in measured[group]:
            rows.setdefault(row["name"], []).append(f"{row['ratio']:.1f}")
    return rows


def row(*cells: str) -> str:
    """A row of a table, as Markdown has it."""
    return "| " + " | ".join(cells) + " |\n"


def rows_below(head: str) -> int:
    """How many rows the page's table under that head has."""
    table = PAGE[PAGE.index(head) :].partition("\n\n")[0]
    return table.count("\n") - 1


def test_the_speeds_of_fingerprints_are_those_that_were_measured() -> None:
    """Every row of README's table stands in the committed results, and none of the results is left out."""
    bodies = ("120 B payment", "1 kB order", "10 kB order", "1 MB catalogue", "GeoJSON")
    expected = ratios("canonicalization.json", *(f"bytes to fingerprint: {body}" for body in bodies))
    wrong = results("canonicalization.json")["machine"]
    for name, values in expected.items():
        assert row(name, *values, wrong[f"pairs wrong: {name}"]) in README


def test_the_speeds_of_calls_are_those_that_were_measured() -> None:
    """A library that was not asked with pydantic has two empty cells."""
    calls = ratios("functions.json", "In memory, in units of a dict and Lock pair")
    kinds = ("new, scalars", "replay, scalars", "new, pydantic", "replay, pydantic")
    libraries = ("idemcore", "Powertools", "idemkit")
    for library in libraries:
        values = [calls.get(f"{library}: {kind}", [""])[0] for kind in kinds]
        assert row(library, *values) in PAGE
    assert rows_below("| in memory, a dict and Lock pair = 1") == len(libraries)


def test_the_speeds_of_requests_are_those_that_were_measured() -> None:
    """In units of the bare Flask view."""
    (rows,) = results("http.json")["groups"].values()
    taken = {measured["name"]: measured["micros"] for measured in rows}

    def times(name: str) -> str:
        return f"{taken[name] / taken['Flask: bare']:.2f}"

    for adapter in ("Flask", "WSGI"):
        verbs = ("no key", "new, memory", "replay, memory")
        assert row(f"idemcore, {adapter}", *(times(f"{adapter}: {verb}") for verb in verbs)) in PAGE
    peer = [times(f"WSGI: idemkit: {verb}, memory") for verb in ("new", "replay")]
    assert row("idemkit, WSGI", "", *peer) in PAGE
    assert f"stands at {times('WSGI: bare')}." in PAGE
    whole = taken["WSGI: new, memory"]
    assert 0.40 < taken["part: its fingerprint"] / whole < 0.50  # "almost half"
    assert 0.15 < taken["part: claim and record (engine, store)"] / whole < 0.25  # "a fifth"


def test_the_speeds_of_stores_are_those_that_were_measured() -> None:
    """Each goal of a store is met in them; sweeps, and what they cost others, are among the figures."""
    measured = results("stores.json")
    assert all(goal["met"] for goal in measured["goals"])
    printed = {"memory": "memory (a dict and a Lock)"}
    for name, figures in measured["figures"].items():
        pair = [f"{figures[verb]:.2f}" for verb in ("new", "replay")]
        sweep = [f"{figures[what]:.1f}" if what in figures else "" for what in ("sweep", "foreground")]
        assert row(printed.get(name, name), *pair, *sweep) in PAGE
    assert rows_below("| its driver's bare statements = 1") == len(measured["figures"])
    assert f"takes at most {measured['figures']['memory']['bytes']:.0f} bytes" in PAGE


def test_the_speeds_of_other_libraries_on_stores_are_those_that_were_measured() -> None:
    """Each beside the same bare statements."""
    groups = measured_by_peer("memory", "PostgreSQL, psycopg 3", "Redis")
    for name, pair in groups.items():
        assert row(name, *pair) in PAGE
    assert rows_below("| the same, other libraries") == len(groups)


def measured_by_peer(*backends: str) -> dict[str, list[str]]:
    """For each library on each backend, its two ratios."""
    groups = results("stores.json")["groups"]
    found: dict[str, list[str]] = {}
    for backend in backends:
        for verb in ("new", "replay"):
            for measured in groups[f"{backend}: {verb}"]:
                library = measured["name"].removesuffix(", a dict as its layer")
                if library.startswith(("idemkit", "Powertools")):
                    name = f"{backend.partition(',')[0]}: {library}"
                    found.setdefault(name, []).append(f"{measured['ratio']:.2f}")
    return found


def test_the_growth_is_what_was_measured() -> None:
    """The last size of each store beside its first one."""
    worst = max(rows[-1]["ratio"] for rows in results("growth.json")["rows"].values())
    for text in (README, PAGE):
        assert f"at most {100 * (worst - 1):.0f} % more" in text
