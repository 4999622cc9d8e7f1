"""Does a hostile body take more than its share? By what power of a body's size does the time grow?

    python -m benchmarks.canonical_growth [--quick] [--json FILE]

1.0 is linear, 2.0 quadratic. From least CPU times of the rounds; sorting adds its logarithm, and a body that no
longer fits in the processor's caches some more. What is refused is hashed as it came, and counts like the rest.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from math import log2
from time import process_time_ns

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.harness import arguments, machine
from idemcore import Canonicalizer

POINTERS = ("/*/*/x", "/*/a", "/a/*/b", "/0/*", "/*/*/*/y")

Shape = Callable[[int], bytes]


def listed(item: bytes) -> Shape:
    """An array of one item, again and again."""
    return lambda size: b"[" + b",".join([item] * (size // (len(item) + 1))) + b"]"


def numbered(text: str, opener: str = "[", closer: str = "]") -> Shape:
    """Items of which no two are alike."""
    count = len(text.replace("%d", "123456")) + 1
    return lambda size: (opener + ",".join(text % n for n in range(size // count)) + closer).encode()


def inside(before: bytes, piece: bytes, after: bytes) -> Shape:
    """One piece again and again between two others."""
    return lambda size: before + piece * (size // len(piece)) + after


SHAPES: dict[str, Shape] = {
    "one long string": inside(b'["', b"x", b'"]'),
    "quotes that are escaped": inside(b'["', b'\\"', b'"]'),
    "backslashes": inside(b'["', b"\\\\", b'"]'),
    "escapes of one letter": inside(b'["', b"\\u0061", b'"]'),
    "surrogate pairs": inside(b'["', b"\\ud83d\\ude00", b'"]'),
    "brackets in a string": inside(b'["', b"[{", b'"]'),
    "strings that end in a bracket": listed(b'"]"'),
    "spaces": inside(b"[", b" ", b"1]"),
    "one integer": inside(b"", b"7", b""),
    "one fraction": inside(b"0.", b"7", b""),
    "zeros behind the point": inside(b"0.", b"0", b"1"),
    "an exponent of zeros": inside(b"1e", b"0", b"1"),
    "integers of 22 digits": listed(b"1234567890123456789012"),
    "fractions that differ": numbered("%d.25"),
    "long fractions that differ": numbered("0.123456789012%d"),
    "exponents that grow": numbered("1e%d"),
    "members that differ": numbered('"k%d":1', "{", "}"),
    "one name": inside(b'{"a":1', b',"a":1', b"}"),
    "objects whose names differ": numbered('{"k%d":1}'),
    "names beyond U+FFFF": numbered('"\U0001f600%d":1,"\ufb33":1', "{", "}"),
    "names with one long beginning": numbered('"' + "k" * 200 + '%d":1', "{", "}"),
    "512 deep, and wide": lambda size: b"[" * 511 + listed(b"[]")(size) + b"]" * 511,
    "513 deep, and wide": lambda size: b"[" * 512 + listed(b"[]")(size) + b"]" * 512,
    "openers": inside(b"", b"[", b""),
    "members that open": inside(b"", b'{"":', b""),
    "empty objects": listed(b"{}"),
    "what the pointers name": listed(b'{"a":{"x":1,"b":[{"y":2}]}}'),
    "a wrong byte at the end": inside(b'["', b"x", b'"]x'),
    "no UTF-8 at the end": inside(b'["', b"x", b'"]\xff'),
}

RULES = {
    "stdlib": Canonicalizer(fast=False),
    "msgspec": Canonicalizer(fast=True),
    "excluding": Canonicalizer(POINTERS),
    "rfc8785": Canonicalizer(mode="rfc8785"),
}


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    rounds, sizes = (
        (3, [1 << 14, 1 << 15, 1 << 16]) if options.quick else (9, [1 << 16, 1 << 17, 1 << 18, 1 << 19])
    )
    found: dict[str, dict[str, float]] = {}
    for shape in track(SHAPES, "shapes", console=Console(stderr=True), transient=True):
        bodies = [SHAPES[shape](size) for size in sizes]
        found[shape] = {name: power(rule, bodies, rounds) for name, rule in RULES.items()}
    title = f"time grows with this power of the size, {sizes[0] >> 10} to {sizes[-1] >> 10} KiB"
    table = Table("", *RULES, title=title, title_justify="left")
    for shape, powers in found.items():
        table.add_row(shape, *(f"{value:.2f}" for value in powers.values()))
    Console(width=max(90, Console().width)).print(table)
    if options.json:
        content = {"machine": machine("msgspec"), "sizes": sizes, "powers": found}
        options.json.write_text(json.dumps(content, indent=2) + "\n")


def power(rule: Canonicalizer, bodies: list[bytes], rounds: int) -> float:
    """By what power of the size the time grows, from the smallest body to the largest."""
    least = [float("inf")] * len(bodies)
    gc.collect()
    gc.disable()  # it comes when it comes
    for _ in range(rounds):
        for number, body in enumerate(bodies):
            started = process_time_ns()
            rule.fingerprint_json(body)
            least[number] = min(least[number], process_time_ns() - started)
    gc.enable()
    return log2(least[-1] / least[0]) / log2(len(bodies[-1]) / len(bodies[0]))


if __name__ == "__main__":
    main()
