"""What does a fingerprint cost, and what is it worth? Speed and correctness of all peers, in one run.

    python -m benchmarks.canonicalization [--quick] [--json FILE] [--plot FILE]

From bytes to a fingerprint, and from values and models to canonical bytes. Times are CPU times, as ratios to
orjson's sorted dump with SHA-256 in the same round: the compiled limit, which is wrong on many pairs. Beside
each peer stands how many of the pairs in `canonical_pairs` it merges, splits and refuses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jcs
import msgspec
import orjson
import rfc8785
from rich.console import Console
from rich.table import Table

from benchmarks.canonical_pairs import DIFFERENT, SAME, Verdict, judged
from benchmarks.canonical_payloads import Order, orders, payloads
from benchmarks.harness import RESULTS, Contender, Row, arguments, machine, race, save
from idemcore import Canonicalizer

Way = Callable[[Any], object]

COMPILED = "orjson sorted + SHA-256"
OURS = "idemcore"
FAST = "idemcore with msgspec"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--plot", type=Path, metavar="FILE", default=RESULTS / "canonicalization.svg")
    options = parser.parse_args()
    rounds, work = (5, 30_000) if options.quick else (15, 120_000)

    ways = from_bytes()
    verdicts = {name: judged(way) for name, way in ways.items()}
    groups = {
        f"bytes to fingerprint: {name}": measured(ways, body, rounds, work // len(body) + 1, name)
        for name, body in payloads().items()
    }
    for name, order in orders().items():
        size = len(orjson.dumps(order))
        value, model = as_parsed(order), Order.model_validate(order)
        calls = work // size + 1
        groups[f"value to bytes: {name}"] = measured(from_value(), value, rounds, calls, name)
        groups[f"model to bytes: {name}"] = measured(from_model(), model, rounds, calls, name)

    facts = machine("orjson", "msgspec", "rfc8785", "jcs", "jcs-admit", "idemkit", "aws-lambda-powertools")
    for kind in ("bytes to fingerprint", "value to bytes", "model to bytes"):
        mine = {title.partition(": ")[2]: rows for title, rows in groups.items() if title.startswith(kind)}
        show(kind, mine, verdicts if kind.startswith("bytes") else {})
    if options.json:
        save(options.json, facts | {f"pairs wrong: {name}": str(v) for name, v in verdicts.items()}, groups)
    if not options.quick:
        from benchmarks.canonical_plot import draw

        bodies = {title: rows for title, rows in groups.items() if title.startswith("bytes")}
        draw(options.plot, bodies, verdicts, facts)


def from_bytes() -> dict[str, Way]:
    """Ways from a JSON body to a digest, as each peer does it."""

    def sha256(text: bytes) -> str:
        return hashlib.sha256(text).hexdigest()

    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder(order="sorted").encode
    ways: dict[str, Way] = {
        COMPILED: lambda body: sha256(orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)),
        OURS: Canonicalizer(fast=False).fingerprint_json,
        FAST: Canonicalizer(fast=True).fingerprint_json,
        # What the way over msgspec could come down to, if it left all that makes it right.
        "msgspec sorted + SHA-256": lambda body: sha256(encode(decode(body))),
        "json.dumps(sort_keys) + SHA-256": lambda body: sha256(sorted_dump(json.loads(body))),
        "rfc8785 + SHA-256": lambda body: sha256(rfc8785.dumps(json.loads(body))),
        "jcs + SHA-256": lambda body: sha256(jcs.canonicalize(json.loads(body))),
    }
    try:
        import jcs_admit
    except ImportError:
        pass
    else:
        ways["jcs-admit + SHA-256"] = lambda body: sha256(jcs_admit.admit(body))
    return ways | idemkit_way() | powertools_way()


def idemkit_way() -> dict[str, Way]:
    try:
        from idemkit.core.fingerprint import compute_fingerprint
    except ImportError:
        return {}
    return {"idemkit": lambda body: compute_fingerprint("POST", "/", "", body, "application/json")}


def powertools_way() -> dict[str, Way]:
    try:
        from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
    except ImportError:
        return {}

    class Layer(BasePersistenceLayer):  # type: ignore[misc]  # untyped where it is not installed
        """Only hashes."""

        _get_record = _put_record = _update_record = _delete_record = lambda *_: None

    layer = Layer()
    return {"Powertools (MD5)": lambda body: layer._generate_hash(json.loads(body))}


def from_value() -> dict[str, Way]:
    """Ways from a Python value to canonical bytes."""
    return {
        COMPILED.partition(" +")[0]: lambda value: orjson.dumps(value, option=orjson.OPT_SORT_KEYS),
        OURS: Canonicalizer().canonicalize,
        "json.dumps(sort_keys)": sorted_dump,
        "rfc8785": rfc8785.dumps,
        "jcs": jcs.canonicalize,
    }


def from_model() -> dict[str, Way]:
    """Ways from a pydantic model to canonical bytes; the dumps lose secrets and subclasses on the way."""

    def dumped(model: Any) -> Any:
        return model.model_dump(mode="json")

    return {
        "model_dump + orjson sorted": lambda model: orjson.dumps(dumped(model), option=orjson.OPT_SORT_KEYS),
        OURS: Canonicalizer().canonicalize,
        "model_dump + json.dumps(sort_keys)": lambda model: sorted_dump(dumped(model)),
        "model_dump + rfc8785": lambda model: rfc8785.dumps(dumped(model)),
    }


def sorted_dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def as_parsed(order: Any) -> Any:
    """Fresh objects, as a parser gives them: equal strings are not one object."""
    return json.loads(json.dumps(order))


def measured(ways: Mapping[str, Way], given: Any, rounds: int, calls: int, title: str) -> list[Row]:
    """A race of those ways that can do it at all; the first of them is the base."""

    def run(way: Way) -> Callable[[int], None]:
        def repeated(times: int) -> None:
            for _ in range(times):
                way(given)

        return repeated

    able = [name for name, way in ways.items() if can(way, given)]
    contenders = [Contender(name, run(ways[name]), base=name == able[0]) for name in able]
    return race(contenders, rounds=rounds, calls=calls, title=title, cpu_time=True)


def can(way: Way, given: Any) -> bool:
    try:
        way(given)
    except Exception:
        return False
    return True


def show(title: str, groups: Mapping[str, list[Row]], verdicts: Mapping[str, Verdict]) -> None:
    """One table: a row for each peer, a column for each payload."""
    table = Table(title=f"{title}: time as a multiple of the first row's", title_justify="left")
    table.add_column("", no_wrap=True)
    for name in groups:
        table.add_column(name, justify="right")
    if verdicts:
        table.add_column(f"of {len(SAME) + len(DIFFERENT)} pairs\nmerged / split / refused", justify="right")
    names = dict.fromkeys(row.name for rows in groups.values() for row in rows)
    for name in names:
        cells = [cell(name, rows) for rows in groups.values()]
        table.add_row(name, *cells, *([str(verdicts[name])] if verdicts else []))
    Console(width=max(150, Console().width)).print(table)


def cell(name: str, rows: list[Row]) -> str:
    for row in rows:
        if row.name == name:
            return f"{row.micros:,.1f} µs" if row is rows[0] else f"{row.ratio:.2f}"
    return "fails"


if __name__ == "__main__":
    main()
