"""One self-contained HTML page: for each scene a time line of what clients saw and what the ledger shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from client import Answer
from ledger import euros
from play import Verdict
from stage import Outcome

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d8dee4; --quiet: #656d76;
  --good: #1a7f37; --again: #0969da; --refused: #9a6700; --bad: #cf222e; --lost: #8c959f;
  --charge: #8250df; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d;
  --quiet: #8d96a0;
  --good: #3fb950; --again: #4493f8; --refused: #d29922; --bad: #f85149; --lost: #6e7681; --charge: #ab7df8; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .2rem; }
p { margin: .2rem 0 .8rem; } .quiet { color: var(--quiet); }
.verdict { white-space: nowrap; font-weight: 600; color: var(--good); }
.verdict.bad, .wrong { color: var(--bad); }
table { width: 100%; border-collapse: collapse; font-size: .87rem; }
th { text-align: left; font-weight: 600; color: var(--quiet); }
th, td { padding: .28rem .6rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.line { table-layout: fixed; } td { overflow-wrap: anywhere; }
.at { width: 5rem; font-variant-numeric: tabular-nums; } .who { width: 6.5rem; } .track { width: 30%; }
.answer { width: 21%; }
code { font: .92em ui-monospace, monospace; }
.rail { position: relative; height: 1.25rem; }
.bar { position: absolute; top: .3rem; height: .65rem; min-width: 3px; border-radius: 2px;
  background: var(--kind); }
.bar.charge { width: .65rem; margin-left: -.3rem; transform: rotate(45deg) scale(.85); }
.bar.note { width: 2px; top: 0; height: 1.25rem; }
.ran { --kind: var(--good); } .replayed { --kind: var(--again); } .refused { --kind: var(--refused); }
.failed { --kind: var(--bad); } .lost { --kind: var(--lost); } .charge { --kind: var(--charge); }
.note { --kind: var(--ink); } b { color: var(--kind, inherit); }
@media (max-width: 48rem) { .who, .track { width: 20%; } .at { width: 4rem; } }
"""

MANY = 80  # rows that one time line shows


@dataclass(frozen=True)
class Moment:
    """One row of a time line: a stretch of time, or a point in it."""

    at: float
    until: float
    who: str
    what: str
    kind: str
    result: str


def write(path: Path, played: Verdict) -> None:
    """Writes the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(page(played)), encoding="utf-8")


def page(played: Verdict) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><meta charset="utf-8"><title>Payments over a bad network</title>'
    yield f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style>'
    yield "<h1>Payments over a bad network</h1>"
    yield f"<p>Charged by the card network's ledger: {played.charged:,}; must be there: {played.must_be:,}: "
    yield mark(not played.differences, "exactly those", "not what it must be") + ".</p>"
    yield from (f'<p class="wrong">{escape(each)}</p>' for each in played.differences)
    yield "<table><tr><th>scene<th>sent<th>came back<th>the network charged<th>"
    for number, outcome in enumerate(played.outcomes):
        cells = (outcome.sent, outcome.came_back, outcome.charged)
        yield f'<tr><td><a href="#scene-{number}">{escape(outcome.name)}</a>'
        yield "".join(f"<td>{escape(cell)}" for cell in cells)
        yield f"<td>{mark(outcome.ok)}"
    yield "</table>"
    for number, outcome in enumerate(played.outcomes):
        yield from section(number, outcome)
    yield "</html>\n"


def section(number: int, outcome: Outcome) -> Iterator[str]:
    yield f'<h2 id="scene-{number}">{escape(outcome.name)} {mark(outcome.ok)}</h2>'
    yield f'<p class="quiet">{escape(outcome.title)}</p>'
    yield from (f'<p class="wrong">{escape(each)}</p>' for each in outcome.wrong)
    rows = sorted(moments(outcome), key=lambda moment: (moment.at, moment.until))
    yield '<table class="line"><tr><th class="at">after<th class="who">who<th>what'
    yield '<th class="track"><th class="answer">result'
    whole = max([outcome.ended_at, *(row.until for row in rows)]) - outcome.began_at or 1.0
    shown = rows if len(rows) <= MANY else [*rows[: MANY // 2], *rows[-MANY // 2 :]]
    for index, row in enumerate(shown):
        if len(rows) > MANY and index == MANY // 2:
            yield f'<tr><td colspan="5" class="quiet">{len(rows) - MANY:,} more like these'
        left = 100 * (row.at - outcome.began_at) / whole
        width = f";width:{100 * (row.until - row.at) / whole:.2f}%" if row.until > row.at else ""
        yield f'<tr class="{row.kind}"><td>{1000 * (row.at - outcome.began_at):,.0f} ms<td>{escape(row.who)}'
        yield f"<td><code>{escape(row.what)}</code>"
        yield f'<td><div class="rail"><div class="bar {row.kind}" style="left:{left:.2f}%{width}"></div></div>'
        yield f"<td><b>{escape(row.result)}</b>"
    yield "</table>"


def moments(outcome: Outcome) -> Iterator[Moment]:
    for each in outcome.exchanges:
        yield Moment(
            each.sent_at, each.answered_at, each.who, each.what, kind_of(each.answer), str(each.answer)
        )
    for line in outcome.ledger:
        charged = f"charged {euros(line['amount'])}"
        yield Moment(line["at"], line["at"], "the network", f"{line['id']} for {line['by']}", "charge", charged)
    for at, text in outcome.notes:
        yield Moment(at, at, "", text, "note", "")


def kind_of(answer: Answer) -> str:
    if answer.lost:
        return "lost"
    if answer.replayed:
        return "replayed"
    if answer.status < 400:
        return "ran"
    return "refused" if answer.status < 500 else "failed"


def mark(ok: bool, good: str = "ok", bad: str = "NOT OK") -> str:
    return f'<span class="verdict">{good}</span>' if ok else f'<span class="verdict bad">{bad}</span>'
