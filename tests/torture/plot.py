"""What happened when, in one picture: calls by their answer, takeovers, and what was done to the workers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.torture.history import History

_ORDER = ("ran", "replay", "given", "request_in_progress", "idempotency_key_reuse", "response_not_replayable")


def plot(history: History, title: str, file: Path) -> None:
    """Writes an SVG."""
    start = min(call.invoked for call in history.calls)
    length = max(call.invoked for call in history.calls) - start
    answers: defaultdict[str, list[float]] = defaultdict(list)
    for call in history.calls:
        answers[call.answer or "no answer"].append(call.invoked - start)
    rows: defaultdict[str, list[float]] = defaultdict(list)
    for verb in history.verbs:
        if verb.name == "take_over" and verb.result is True:
            rows["takeover"].append(verb.sent - start)
    for moment, name in history.deeds:
        rows[name].append(moment - start)
    mpl.rcParams["svg.hashsalt"] = "torture"
    figure = Figure(figsize=(10, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    names = sorted(answers, key=lambda name: (_ORDER.index(name) if name in _ORDER else 99, name))
    above.hist([answers[name] for name in names], bins=60, range=(0, length), stacked=True, label=names)
    above.set_ylabel(f"calls in {length / 60:.1f} s")
    above.set_title(title)
    above.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    below.eventplot([rows[name] for name in sorted(rows)], linelengths=0.8, linewidths=0.8)
    below.set_yticks(range(len(rows)), sorted(rows))
    below.set_xlabel("seconds")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
