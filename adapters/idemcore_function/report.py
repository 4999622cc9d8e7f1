"""What a batch came to, item by item; and the line that shows it on a terminal while it runs."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from idemcore import NotReplayable

T = TypeVar("T")
R = TypeVar("R")

Status: TypeAlias = Literal["done", "replayed", "failed", "unknown", "left"]

STATUSES: Final[tuple[Status, ...]] = ("done", "replayed", "failed", "unknown", "left")

_BAR_WIDTH: Final = 30


@dataclass(slots=True)
class Item(Generic[T, R]):
    """One item and what became of it.

    Attributes:
        index: its place in the batch, from 0.
        item: as it was given.
        status: ``done`` by this batch; ``replayed``: done before, or by another process; ``failed``: the
            function raised, or the call was refused; ``unknown``: it is open whether the work was done,
            until an operator settles it; ``left``: not begun, since the batch was stopped.
        value: what the function returned, of a done or replayed item.
        error: what was raised, of any other; and of a replayed one without a value why it has none: its answer
            is not kept (NotReplayable), or is not one of the function's type any more (RecordUnreadable).
        digest: that of the item's identity, as events and errors show it.
        final: of a failed item, whether that is its kept answer, such as a decline that `keep` names: to run
            the batch again gives the same, and runs nothing.
        unrecorded: of an item that ran here, whether no record of that was to be had when the batch ended,
            since the store was away, or full: it is still tried, and where this process ends first, a second
            run of the batch may do the work again.
    """

    index: int
    item: T = field(repr=False)
    digest: str
    status: Status = "left"
    value: R | None = field(default=None, repr=False)
    error: BaseException | None = field(default=None, repr=False)
    final: bool = False
    unrecorded: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Report(Generic[T, R]):
    """What a batch came to.

    Attributes:
        items: in the order in which they were given.
    """

    items: list[Item[T, R]]

    @property
    def counts(self) -> dict[Status, int]:
        """How many items have each status."""
        counted = Counter(item.status for item in self.items)
        return {status: counted[status] for status in STATUSES}

    @property
    def complete(self) -> bool:
        """Whether every item has its answer, a final failure included, and its record: nothing runs again."""
        return all(
            (item.status in ("done", "replayed") or item.final) and not item.unrecorded for item in self.items
        )

    def as_dict(self) -> dict[str, Any]:
        """Counts and troubles as plain JSON values; it holds neither items nor keys nor texts of errors.

        A replayed item is no trouble, its answer kept or not: it is done. One whose kept answer cannot be read
        is, and one without a record, whose error is null where its function raised none.
        """
        counts = self.counts
        return {
            "total": len(self.items),
            "complete": self.complete,
            **{str(status): counts[status] for status in STATUSES},
            "troubles": [
                {
                    "index": item.index,
                    "digest": item.digest,
                    "status": item.status,
                    "final": item.final,
                    "unrecorded": item.unrecorded,
                    "error": None if item.error is None else type(item.error).__name__,
                }
                for item in self.items
                if item.unrecorded
                or (
                    item.error is not None
                    and not (item.status == "replayed" and isinstance(item.error, NotReplayable))
                )
            ],
        }

    def __repr__(self) -> str:
        return f"Report({self})"

    def __str__(self) -> str:
        counts = [f"{count:,} {status}" for status, count in self.counts.items() if count]
        final = sum(item.final for item in self.items)
        told = f", of the failed {final:,} final" if final else ""
        if unrecorded := sum(item.unrecorded for item in self.items):
            told += f"; {unrecorded:,} without a record, which may run again"
        return f"{len(self.items):,} items: {', '.join(counts) or 'none'}{told}"


class ProgressLine:
    """One line on standard error that is written over and over; nothing where that is no terminal.

    Where it cannot be written, the batch goes on without it.
    """

    def __init__(self, report: Report[Any, Any], show: bool | None) -> None:
        self._report = report
        self._shows = show if show is not None else _on_terminal()

    def draw(self, *, last: bool = False) -> None:
        """Shows how far the batch is."""
        if not self._shows:
            return
        counts = self._report.counts
        total = len(self._report.items)
        passed = total - counts["left"]
        filled = _BAR_WIDTH * passed // total if total else _BAR_WIDTH
        told = ", ".join(f"{counts[status]:,} {status}" for status in STATUSES[:-1] if counts[status])
        line = f"\r[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {passed:,}/{total:,} {told}\x1b[K"
        self._shows = _written(line + ("\n" if last else ""))


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _written(text: str) -> bool:
    """Whether standard error took the text; None stands there in a program without a console."""
    if sys.stderr is None:
        return False
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # the reader of a pipe has gone, or the file is closed
        return False
    return True
