"""The picture of the canonicalization benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.canonical_pairs import DIFFERENT, SAME, Verdict
from benchmarks.harness import Row

OURS = {"idemcore": "#0b6e4f", "idemcore with msgspec": "#13a673"}
OTHERS = ["#7a7a7a", "#b07aa1", "#e15759", "#f28e2b", "#4e79a7", "#9c755f", "#76b7b2", "#bab0ac"]


def draw(
    path: Path, groups: Mapping[str, list[Row]], verdicts: Mapping[str, Verdict], facts: Mapping[str, str]
) -> None:
    """A bar for each peer and payload; the legend says how often the peer is wrong."""
    mpl.rcParams["svg.hashsalt"] = "idemcore"  # the same figures give the same file
    figure = Figure(figsize=(12, 5.5), layout="constrained")
    axes = figure.add_subplot()
    names = list(dict.fromkeys(row.name for rows in groups.values() for row in rows))
    greys = iter(OTHERS)
    colours = {name: OURS.get(name) or next(greys) for name in names}
    width = 0.85 / len(names)
    for number, name in enumerate(names):
        heights = [next((row.ratio for row in rows if row.name == name), 0.0) for rows in groups.values()]
        places = [place + (number - (len(names) - 1) / 2) * width for place in range(len(groups))]
        verdict = verdicts[name]
        wrong = verdict.merged + verdict.split
        label = f"{name}: {wrong} of {len(SAME) + len(DIFFERENT)} pairs wrong, {verdict.merged} of them merged"
        axes.bar(places, heights, width, color=colours[name], label=label)
    axes.set_yscale("log", base=2)
    axes.set_yticks([0.5, 1, 2, 4, 8, 16, 32], ["½", "1", "2", "4", "8", "16", "32"])
    axes.set_xticks(range(len(groups)), [labelled(title, rows) for title, rows in groups.items()])
    axes.set_ylabel("CPU time, multiple of the compiled limit")
    axes.set_title("From the bytes of a JSON body to its fingerprint (lower is faster; no bar: it fails)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(fontsize=8, frameon=False, loc="outside lower left", ncols=2)
    axes.set_xlabel(", ".join(f"{name} {version}" for name, version in facts.items()), fontsize=6, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def labelled(title: str, rows: list[Row]) -> str:
    """The payload, with its unit where that is not the compiled limit, which cannot do it."""
    payload = title.partition(": ")[2]
    return payload if rows[0].name.startswith("orjson") else f"{payload}\n({rows[0].name} = 1)"
