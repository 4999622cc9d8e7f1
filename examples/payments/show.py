"""How the scenes appear: a live table on a terminal, one line each elsewhere."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from stage import Outcome


class Show:
    """Told what happens, in order; this one shows nothing, for `--json`, where only the document is printed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the showing."""

    def playing(self, name: str) -> None:
        """A scene begins."""

    def progress(self, done: int, total: int) -> None:
        """The scene that is playing got so far."""

    def played(self, outcome: Outcome) -> None:
        """A scene is over."""


class Plain(Show):
    """One line for each scene, as it ends; what was wrong below it."""

    def played(self, outcome: Outcome) -> None:
        verdict = "ok" if outcome.ok else "NOT OK"
        print(
            f"{verdict:<6}  {outcome.name}: sent {outcome.sent}; came back {outcome.came_back};"
            f" the network charged {outcome.charged}",
            flush=True,
        )
        for problem in outcome.wrong:
            print(textwrap.indent(problem, "        - "), flush=True)


class Table(Show):
    """A live table; the scene that is playing has a moving mark."""

    def __init__(self, names: Sequence[str]) -> None:
        from rich.live import Live

        self._names = names
        self._outcomes: dict[str, Outcome] = {}
        self._playing = ""
        self._progress: tuple[int, int] | None = None
        self._live = Live(get_renderable=self._table, refresh_per_second=12)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._playing = ""
        self._live.__exit__(kind, error, trace)

    def playing(self, name: str) -> None:
        self._playing, self._progress = name, None

    def progress(self, done: int, total: int) -> None:
        self._progress = (done, total)

    def played(self, outcome: Outcome) -> None:
        self._outcomes[outcome.name] = outcome
        self._playing = ""

    def _table(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table as RichTable
        from rich.text import Text

        spinner = Spinner("dots")
        table = RichTable("scene", "sent", "came back", "the network charged", "", expand=True)
        for name in self._names:
            if outcome := self._outcomes.get(name):
                verdict = Text("ok", "green") if outcome.ok else Text("NOT OK", "bold red")
                charged = Text(outcome.charged + "".join(f"\n{wrong}" for wrong in outcome.wrong))
                table.add_row(name, Text(outcome.sent), Text(outcome.came_back), charged, verdict)
            elif name == self._playing:
                done, total = self._progress or (0, 0)
                bar = ProgressBar(total, done) if total else ""
                table.add_row(Text(name, "bold"), bar, f"{done:,} of {total:,}" if total else "", "", spinner)
            else:
                table.add_row(Text(name, "dim"))
        return table


def choose(names: Sequence[str], *, as_json: bool) -> Show:
    if as_json:
        return Show()
    if sys.stdout.isatty():
        try:
            return Table(names)
        except ImportError:
            return Plain()
    return Plain()
