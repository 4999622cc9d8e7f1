"""Reading and computing the lines of the golden file."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from idemcore.canonical import Canonicalizer, JsonBody
from idemcore.errors import CanonicalizationError

HERE = Path(__file__).parent
FILE = HERE / "fingerprints.jsonl"


def loaded(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", HERE / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


names = loaded("names")
NAMES = {name: getattr(names, name) for name in names.__all__}


def rule_of(settings: dict[str, Any]) -> Canonicalizer:
    """The Canonicalizer that a line's `rule` describes."""
    if "key" in settings:
        settings = settings | {"key": bytes.fromhex(settings["key"])}
    return Canonicalizer(**settings)


def line_of(kind: str, given: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The whole line for an input in hex, computed."""
    rule = rule_of(settings)
    text = bytes.fromhex(given)
    canonical: bytes | None = None
    if kind == "json":
        try:
            canonical = rule.canonicalize_json(text)
        except CanonicalizationError:
            pass
        fingerprint = rule.fingerprint_json(text)
    elif kind == "value":
        value = eval(text.decode(), dict(NAMES))  # noqa: S307  # the expressions are ours
        canonical = rule.canonicalize(value)
        fingerprint = rule.fingerprint(value)
    else:
        request = json.loads(text)
        fingerprint = rule.fingerprint_parts(
            request["domain"],
            [
                JsonBody(bytes.fromhex(part["json"])) if isinstance(part, dict) else bytes.fromhex(part)
                for part in request["parts"]
            ],
        )
    return {
        "kind": kind,
        "rule": settings,
        "input": given,
        "canonical": None if canonical is None else canonical.hex(),
        "fingerprint": fingerprint,
    }


def added(cases: list[tuple[str, bytes, dict[str, Any]]]) -> int:
    """Append the cases that the file does not have; how many these were."""
    present = {(line["kind"], line["input"], json.dumps(line["rule"])) for line in lines()}
    count = 0
    with FILE.open("a", encoding="ascii") as file:
        for kind, text, settings in cases:
            name = (kind, text.hex(), json.dumps(settings))
            if name not in present:
                present.add(name)
                file.write(json.dumps(line_of(kind, text.hex(), settings)) + "\n")
                count += 1
    return count


def lines() -> list[dict[str, Any]]:
    """The lines of the file, in order."""
    return [json.loads(line) for line in FILE.read_text(encoding="ascii").splitlines()] if FILE.exists() else []
