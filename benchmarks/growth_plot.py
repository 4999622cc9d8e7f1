"""The picture of the growth benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.harness import Row


def draw(
    path: Path,
    rows: Mapping[str, list[Row]],
    rates: Mapping[str, Mapping[int, float]],
    facts: Mapping[str, str],
) -> None:
    """Left the cost of a call by records in the table, right the requests a second by workers."""
    mpl.rcParams["svg.hashsalt"] = "idemcore"  # the same figures give the same file
    figure = Figure(figsize=(12, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours: dict[str, str] = {}

    def look(backend: str, dashed: bool) -> dict[str, Any]:
        """One colour for all that is of a backend."""
        colour = colours.setdefault(backend, f"C{len(colours)}")
        return {"color": colour, "linestyle": "--" if dashed else "-"}

    for title, found in rows.items():
        sizes = [int(row.name.replace(",", "")) for row in found]
        backend, verb = title.split(": ")
        left.plot(
            sizes, [row.ratio for row in found], marker="o", label=title, **look(backend, verb == "replay")
        )
    left.set_xscale("log")
    left.set_ylim(0, 2)
    left.axhline(1.15, color="#999999", linewidth=0.8, linestyle=":")
    left.set_title("Time of a call, by records in the table (the smallest table = 1)")
    left.set_xlabel("records")
    for title, found in rates.items():
        backend, _, kind = title.rpartition(", ")
        right.plot(
            list(found), list(found.values()), marker="o", label=title, **look(backend, kind == "threads")
        )
    right.set_ylim(bottom=0)
    right.set_title("New requests a second, by workers")
    right.set_xlabel("threads or processes")
    for axes in (left, right):
        axes.legend(fontsize=7, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#dddddd", linewidth=0.6)
    versions = ", ".join(f"{name} {version}" for name, version in facts.items())
    figure.supxlabel(versions, fontsize=6, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
