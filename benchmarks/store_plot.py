"""The picture of the store benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.harness import Row

OURS = "#0b6e4f"
OTHERS = {"idemkit": "#e15759", "Powertools": "#f28e2b"}
BARE = "#b5b5b5"


def draw(path: Path, groups: Mapping[str, list[Row]], facts: Mapping[str, str]) -> None:
    """A panel for new requests and one for replays; a bar for each side of each backend."""
    mpl.rcParams["svg.hashsalt"] = "idemcore"  # the same figures give the same file
    figure = Figure(figsize=(12, 5.5), layout="constrained")
    for place, verb in enumerate(("new", "replay")):
        axes = figure.add_subplot(1, 2, place + 1)
        labels: list[str] = []
        for title, rows in groups.items():
            backend, _, of = title.partition(": ")
            if of != verb:
                continue
            for row in rows:
                axes.barh(len(labels), row.ratio, color=colour(row.name, rows[0].name))
                axes.annotate(f" {row.ratio:.2f}", (row.ratio, len(labels)), va="center", fontsize=7)
                labels.append(f"{backend}: {row.name}")
        axes.set_yticks(range(len(labels)), labels, fontsize=7)
        axes.invert_yaxis()
        axes.set_xscale("log", base=2)
        axes.set_xticks([1, 2, 4, 8, 16, 32, 64, 128], ["1", "2", "4", "8", "16", "32", "64", "128"])
        axes.set_xlim(left=0.8)
        axes.set_title("A new request: claim and complete" if verb == "new" else "A replay")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("× the driver's bare statements (lower is faster)", fontsize=8)
    figure.suptitle("What remembering costs, beside the bare statements of each driver")
    figure.supxlabel(
        ", ".join(f"{name} {version}" for name, version in facts.items()), fontsize=6, x=0.01, ha="left"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def colour(name: str, base: str) -> str:
    if name == base:
        return BARE
    return next((colour for peer, colour in OTHERS.items() if name.startswith(peer)), OURS)
