"""The fingerprints that stored records carry: none of them ever changes."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"

# Raised only when lines were added, to freeze these too; a digest that no longer fits is a broken promise.
FROZEN_LINES = 287
FROZEN_SHA256 = "857a3134a232480657bca1e5d96097a7e439b29f3e3ce90da549a8e14f95be8a"


def _cases() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_cases", GOLDEN / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = _cases()
LINES: list[dict[str, Any]] = CASES.lines()


@pytest.mark.parametrize("position", range(len(LINES)))
def test_each_golden_line_comes_out_again(position: int) -> None:
    """CAN-09: a fingerprint that a stored record may carry is what it was."""
    line = LINES[position]
    assert CASES.line_of(line["kind"], line["input"], line["rule"]) == line


def test_the_frozen_lines_are_as_they_were_frozen() -> None:
    """Lines are added at the end; those that were there are neither changed nor removed."""
    text = CASES.FILE.read_bytes()
    frozen = b"".join(text.splitlines(keepends=True)[:FROZEN_LINES])
    assert hashlib.sha256(frozen).hexdigest() == FROZEN_SHA256


def test_no_two_different_requests_share_a_golden_fingerprint() -> None:
    """Lines with one fingerprint have one canonical form, or are one raw body."""
    meanings: dict[str, set[object]] = {}
    for line in LINES:
        if line["kind"] != "parts":
            meaning = line["canonical"] or ("raw", line["input"])
            meanings.setdefault(line["fingerprint"], set()).add(meaning)
    assert [found for found in meanings.values() if len(found) > 1] == []


def test_the_file_covers_every_kind_of_case() -> None:
    """Texts with and without a form, values, composed requests, and each setting of a rule."""
    kinds = Counter((line["kind"], line["canonical"] is not None) for line in LINES)
    assert min(kinds[kind] for kind in (("json", True), ("json", False), ("value", True))) >= 50
    assert kinds["parts", False] >= 9
    assert {name for line in LINES for name in line["rule"]} == {"mode", "exclude", "key", "key_id"}


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_golden_fingerprints_do_not_depend_on_the_hash_seed(seed: str) -> None:
    """Sets come out in another order in each process; their fingerprints do not."""
    code = (
        "import json, sys\n"
        f"sys.path.insert(0, {str(GOLDEN)!r})\n"
        "from cases import line_of, lines\n"
        "for line in lines(): assert line_of(line['kind'], line['input'], line['rule']) == line\n"
        "print(json.dumps(list({'a', 'b', 'c', 'd', 'e', 'f'})))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert sorted(json.loads(run.stdout)) == ["a", "b", "c", "d", "e", "f"]


def test_a_case_that_is_there_is_not_added_again() -> None:
    """The documented way to add a line refuses to repeat one, and leaves the file alone."""
    before = CASES.FILE.read_bytes()
    run = subprocess.run(
        [sys.executable, str(GOLDEN / "add.py"), "json", "1"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "already" in run.stderr
    assert CASES.FILE.read_bytes() == before
