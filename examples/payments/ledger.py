"""The check: the network's ledger holds exactly the charges that it must, and nothing else.

It reads files and compares; it knows neither the app nor the library, so it cannot take their word.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHOWN = 20  # differences that are spelled out


@dataclass(frozen=True, order=True)
class Charge:
    """One charge that must be there, or is; the amount in cents."""

    merchant: str
    reference: str
    amount: int

    def __str__(self) -> str:
        return f"{self.merchant} {self.reference} {euros(self.amount)}"


def euros(cents: int) -> str:
    return f"€{cents // 100:,}.{cents % 100:02}"


def lines(path: Path, *, growing: bool = False) -> Iterator[dict[str, Any]]:
    """Every line of a ledger; one that is not whole or not JSON is a ValueError.

    While the ledger is `growing`, a last line that is still being written is left for the next look.
    """
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    if growing:
        text = text[: text.rfind("\n") + 1]
    elif text and not text.endswith("\n"):
        raise ValueError(f"{path.name} ends in the middle of a line")
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path.name}, line {number}, is not JSON") from error


def charges(path: Path) -> Counter[Charge]:
    """How often each charge stands in a ledger."""
    return Counter(Charge(line["merchant"], line["reference"], line["amount"]) for line in lines(path))


def differences(ledger: Mapping[Charge, int], expected: Mapping[Charge, int]) -> list[str]:
    """What is wrong with a ledger, a sentence for each charge that is wrong; empty when it is exact."""
    found = []
    for charge in sorted({*ledger, *expected}):
        is_there, must_be = ledger.get(charge, 0), expected.get(charge, 0)
        if is_there != must_be:
            found.append(f"{charge}: charged {times(is_there)}, must be {times(must_be)}")
    return found[:SHOWN] + [f"and {len(found) - SHOWN:,} more like these"] * (len(found) > SHOWN)


def times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def ordered(database: Path, reference: str) -> int:
    """How many orders the app's own books have under a reference."""
    with sqlite3.connect(database) as books:
        (count,) = books.execute("SELECT count(*) FROM orders WHERE reference = ?", (reference,)).fetchone()
    books.close()
    return int(count)


def unbooked(ledger: Path, database: Path, merchants: Collection[str]) -> list[str]:
    """Charges of these merchants that the app has no payment for, and payments without a charge."""
    charged = Counter(line["id"] for line in lines(ledger) if line["merchant"] in merchants)
    with sqlite3.connect(database) as books:
        booked = Counter(row[0] for row in books.execute("SELECT charge_id FROM payments"))
    books.close()
    return [
        f"charge {charge}: {charged[charge]} in the ledger, {booked[charge]} in the payments table"
        for charge in sorted({*charged, *booked})
        if charged[charge] != booked[charge]
    ]
