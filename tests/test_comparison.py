"""The page that compares says what the script's committed answers say, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text()
ASKED: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "behaviour.json").read_text())


def cell(told: dict[str, Any]) -> str:
    """Charges and what the last caller got; bold where that is not what it should have been."""
    if told["right"] is None:
        return "not tried"
    refused = told["last"].startswith("refused")
    same = told["first"] in (told["last"], "died")
    got = "refused" if refused else "the answer" if same else "another answer"
    text = f"{told['charges']}, {got}"
    return text if told["right"] else f"**{text}**"


def test_every_answer_stands_in_the_table() -> None:
    """No case and no library is left out."""
    names = list(next(iter(ASKED["cases"].values())))
    assert f"| charges, and what the last caller got | {' | '.join(names)} |" in PAGE
    for title, told in ASKED["cases"].items():
        assert f"| {title} | {' | '.join(cell(told[name]) for name in names)} |" in PAGE


def test_the_versions_are_those_that_were_asked() -> None:
    """A comparison without versions is one with nobody."""
    machine = ASKED["machine"]
    for library, name in (("idemkit", "idemkit"), ("aws-lambda-powertools", "Powertools"), ("dbos", "DBOS")):
        assert f"{name} {machine[library]}" in PAGE


def test_ours_is_right_in_every_case() -> None:
    """The page may only be shown while it is."""
    assert [title for title, told in ASKED["cases"].items() if not told["idemcore"]["right"]] == []


def test_what_readme_says_of_the_others_is_so() -> None:
    """In eleven cases, each of the three goes wrong in one way or another, and in one that README names."""
    assert "in eleven ordinary cases" in (ROOT / "README.md").read_text()
    assert len(ASKED["cases"]) == 11
    for peer in ("idemkit", "Powertools", "DBOS"):
        wrong = [told[peer] for told in ASKED["cases"].values() if told[peer]["right"] is False]
        assert any(
            told["charges"] > 1 or told["last"].startswith("refused") or told["last"] == told["first"]
            for told in wrong
        )
