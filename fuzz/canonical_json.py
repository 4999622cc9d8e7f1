"""A fuzz target: all ways of the canonicalizer against the slow reference, on any bytes; see README.md."""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from time import monotonic
from typing import Any

atheris: Any
try:
    import atheris
except ImportError:
    atheris = None

TARGETS = ["idemcore.canonical", "tests.core.canonical_reference"]
with nullcontext() if atheris is None else atheris.instrument_imports(include=TARGETS):
    from idemcore.canonical import Canonicalizer
    from idemcore.canonical.number import Refused
    from idemcore.errors import CanonicalizationError
    from tests.core.canonical_reference import canonical_forms
    from tests.core.json_texts import json_text

EXCLUDE = ("/a", "/*/x", "/0/b")
RULES = [
    (Canonicalizer(fast=False), (), "exact"),
    (Canonicalizer(fast=True), (), "exact"),
    (Canonicalizer(EXCLUDE, fast=False), EXCLUDE, "exact"),
    (Canonicalizer(EXCLUDE, fast=True), EXCLUDE, "exact"),
    (Canonicalizer(mode="rfc8785"), (), "rfc8785"),
]


class Difference(Exception):
    """Two ways gave two answers."""


def quickly(rule: Canonicalizer, body: bytes) -> bytes | None:
    """The form that callers get."""
    try:
        return rule.canonicalize_json(body)
    except CanonicalizationError:
        return None


def slowly(rule: Canonicalizer, body: bytes) -> bytes | None:
    """The way without recursion, by itself."""
    try:
        return rule._form._json_slowly(body.decode().strip(" \t\n\r"))
    except (CanonicalizationError, Refused, UnicodeError):
        return None


CASES = list(dict.fromkeys((exclude, mode) for _, exclude, mode in RULES))


def check(body: bytes) -> None:
    """Raise Difference where the ways do not agree on `body`."""
    forms = dict(zip(CASES, canonical_forms(body, CASES), strict=True))
    for rule, exclude, mode in RULES:
        expected = forms[exclude, mode]
        for way in (quickly, slowly):
            found = way(rule, body)
            if found != expected:
                raise Difference(f"{way.__name__}, {rule.tag}: {found!r} instead of {expected!r}")
        if expected is not None and not exclude and rule.canonicalize_json(expected) != expected:
            raise Difference(f"{rule.tag}: {expected!r} is not its own canonical form")


def blindly(runs: float = 100_000, max_total_time: float = float("inf")) -> None:
    """Without Atheris: texts from seeds, and each joined to another where chance has it."""
    until = monotonic() + max_total_time
    first = seed = random.SystemRandom().getrandbits(48)
    other = b""
    while seed - first < runs and monotonic() < until:
        text = json_text(seed)
        at = seed % (len(text) + 1)
        for body in (text, text[:at] + other[at:]):
            try:
                check(body)
            except Exception as error:
                raise Difference(f"on {body!r}") from error
        other, seed = text, seed + 1
    print(f"{2 * (seed - first):,} texts, from seed {first}: no difference")


if __name__ == "__main__":
    if atheris is not None:
        atheris.Setup(sys.argv, check)
        atheris.Fuzz()
    options = [argument[1:].split("=") for argument in sys.argv[1:] if argument.startswith("-")]
    blindly(**{name: float(value) for name, value in options})
