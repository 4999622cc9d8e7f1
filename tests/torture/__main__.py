"""The long torture, `make torture`: each backend in turn, its server restarted and cut off.

The exit status is 0 where the checker found nothing. A plot of what happened when is written for each run.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tests.torture.backends import BACKENDS, ready
from tests.torture.checker import Finding
from tests.torture.director import torture
from tests.torture.history import History
from tests.torture.plot import plot

SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="in all, shared by the backends")
    parser.add_argument("--seed", type=int, default=None, help="of what the workers and the director do")
    parser.add_argument(
        "--backend", choices=sorted(BACKENDS), action="append", help="only this one; may be repeated"
    )
    parser.add_argument("--plots", type=Path, default=Path("build/torture"), help="a folder for the plots")
    options = parser.parse_args()
    backends = options.backend or list(BACKENDS)
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    console = Console()
    failed = False
    for name in backends:
        console.print(f"{name}: seed {seed}")
        with (
            ready(name, troubled=True) as (place, folder),
            Progress(console=console, transient=True) as progress,
        ):
            task = progress.add_task(name, total=1.0)
            history, findings = torture(
                place,
                folder,
                seconds=options.minutes * 60 / len(backends),
                seed=seed,
                watch=lambda done, task=task: progress.update(task, completed=done),  # type: ignore[misc] # bound now
            )
        report(console, history, findings)
        picture = options.plots / f"{name}.svg"
        plot(history, f"{name}, seed {seed}", picture)
        console.print(f"  drawn in {picture}")
        failed = failed or bool(findings)
    return int(failed)


def report(console: Console, history: History, findings: list[Finding]) -> None:
    answers = Counter(call.answer or "no answer" for call in history.calls)
    deeds = Counter(name for _, name in history.deeds)
    takeovers = sum(verb.name == "take_over" and verb.result is True for verb in history.verbs)
    keys = len({call.key for call in history.calls})
    console.print(
        f"  {len(history.calls):,} calls for {keys:,} keys, {len(history.effects):,} effects, "
        f"{len(history.orders):,} orders in one transaction with their record"
    )
    console.print(f"  answers: {', '.join(f'{count:,} {name}' for name, count in answers.most_common())}")
    console.print(
        f"  done to them: {takeovers:,} takeovers, " + ", ".join(f"{n} {w}" for w, n in deeds.most_common())
    )
    for finding in findings[:SHOWN]:
        console.print(f"  [red]{finding.rule}[/] under {finding.key}: {finding.text}")
    console.print(f"  findings: {len(findings)}")


if __name__ == "__main__":
    sys.exit(main())
