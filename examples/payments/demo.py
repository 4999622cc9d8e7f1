"""Takes card payments over a bad network, scene by scene, and lets the network's ledger be the judge.

Exit status: 0 when every scene came out right and the ledger is exactly what it must be, 1 when not,
2 when something outside the demo was in its way, 128 + signal when it was stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import report
from play import SCENES, WITHOUT, Stacks, Verdict, play
from processes import CannotRun
from show import choose
from stage import Outcome

REPORT = Path(__file__).with_name("report.html")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    end_on_signals()
    began = time.monotonic()
    names = options.only or [*SCENES]
    if not options.off and not options.only:
        names.append(WITHOUT)
    try:
        with directory(options.keep) as place, Stacks(names, place, protected=not options.off) as stacks:
            verdict = play(names, stacks, choose(names, as_json=options.json))
        page = write_report(options.report, verdict)
    except CannotRun as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 2
    seconds = round(time.monotonic() - began, 1)
    if options.json:
        print(json.dumps(document(verdict, page, seconds), indent=2, ensure_ascii=False))
    else:
        conclude(verdict, page, seconds)
    return 0 if verdict.ok else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave ledgers, databases and logs in DIR")
    parser.add_argument(
        "--only",
        choices=[*SCENES],
        metavar="SCENE",
        action="append",
        help=f"play this scene alone, may be repeated; one of: {', '.join(SCENES)}",
    )
    parser.add_argument(
        "--off", action="store_true", help="play with the library switched off; the check must then fail"
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", default=REPORT, help="where the HTML report goes (%(default)s)"
    )
    return parser.parse_args(arguments)


def end_on_signals() -> None:
    """A signal ends the program the ordinary way, and with it every process that it started."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, _: object) -> NoReturn:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # a second one must not cut the ending short
        raise SystemExit(128 + number)

    for number in numbers:
        signal.signal(number, stop)


@contextlib.contextmanager
def directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        place = Path(tempfile.mkdtemp(prefix="idemcore-payments-"))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        used = any(keep.iterdir())
    except OSError as error:
        raise CannotRun(f"cannot use {keep}: {error.strerror}") from error
    if used:
        raise CannotRun(f"{keep} is not empty, and an earlier ledger would be counted: name a new directory")
    yield keep.resolve()


def write_report(path: Path, verdict: Verdict) -> Path:
    try:
        report.write(path, verdict)
    except OSError as error:
        raise CannotRun(f"cannot write the report to {path}: {error.strerror}") from error
    return path.resolve()


def conclude(verdict: Verdict, page: Path, seconds: float) -> None:
    told = {problem for outcome in verdict.outcomes for problem in outcome.wrong}
    for problem in verdict.differences:
        if problem not in told:
            print(f"        - {problem}")
    exact = "NOT what it must be" if verdict.differences else "exactly those"
    print(f"ledger: {verdict.charged:,} charged, {verdict.must_be:,} must be there: {exact} ({seconds} s)")
    print(f"report: {page}")


def document(verdict: Verdict, page: Path, seconds: float) -> dict[str, Any]:
    return {
        "ok": verdict.ok,
        "seconds": seconds,
        "ledger": {
            "ok": not verdict.differences,
            "charges": verdict.charged,
            "must_be": verdict.must_be,
            "differences": verdict.differences,
        },
        "scenes": [scene(outcome) for outcome in verdict.outcomes],
        "report": str(page),
    }


def scene(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "title": outcome.title,
        "sent": outcome.sent,
        "came_back": outcome.came_back,
        "network_charged": outcome.charged,
        "ok": outcome.ok,
        "wrong": outcome.wrong,
        "seconds": round(outcome.ended_at - outcome.began_at, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
