"""Passes an answer's chunks on and keeps what may be recorded of them, within the limit.

A stream that breaks leaves a tombstone: the work is done as far as anybody knows, and running it again is
no way to get the rest of the answer. What a client does not wait for is read to its end on its behalf, up
to the limit in bytes and for as long as a claim may be held.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from idemcore.http.kept_answers import AnswerHead
from idemcore.http.run import Run


class Collector:
    """One answer on its way to its client.

    Args:
        run: settled when the answer has ended.
        head: of the answer, where it is known already.
        monotonic: the clock, in seconds.

    Attributes:
        head: of the answer; an application may replace it until bytes have left.
        passed: whether bytes have come, so that the head stands.
    """

    __slots__ = ("_kept", "_monotonic", "_run", "_size", "_source", "_waiting", "head", "passed")

    def __init__(
        self, run: Run, head: AnswerHead | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.head = head
        self.passed = False
        self._run = run
        self._source: Iterator[bytes] = iter(())
        self._waiting: deque[bytes] = deque()
        self._kept: list[bytes] = []
        self._size = 0
        self._monotonic = monotonic

    @property
    def overfull(self) -> bool:
        """Whether more has come than is kept."""
        return self._size > self._run.limit

    def feed(self, chunks: Iterable[bytes]) -> None:
        """Says where the chunks come from; the application's code runs while they are taken."""
        self._source = iter(chunks)

    def add(self, chunk: bytes) -> None:
        """Puts a chunk before those that are still to be taken."""
        self._note(chunk)
        self._waiting.append(chunk)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """The next chunk for the client; the stream's end and its failure are recorded and pass through."""
        if self._waiting:
            return self._waiting.popleft()
        try:
            return self._take()
        except StopIteration:
            self.end()
            raise
        except BaseException:
            self.broke()
            raise

    def seek_head(self) -> None:
        """Takes chunks until the application has said what their head is; what it raises passes through."""
        while self.head is None:
            try:
                self._waiting.append(self._take())
            except StopIteration:
                return

    def whole(self) -> bytes | None:
        """Takes the answer to its end, without recording it.

        Returns:
            The bytes; or None where they are more than is kept, which is recorded: all are still to come.
        """
        while not self.overfull:
            try:
                self._waiting.append(self._take())
            except StopIteration:
                return b"".join(self._kept)
            except BaseException:
                self.broke()
                raise
        self.end()
        return None

    def drain(self) -> None:
        """The client has left: takes the rest for its retry; harmless where nothing is left to record."""
        stops_at = self._monotonic() + self._run.max_hold
        try:
            while not self._run.settled and not self.overfull:
                if self._monotonic() >= stops_at:
                    self.broke("not_drained")
                    return
                try:
                    self._take()
                except StopIteration:
                    break
            self.end()
        except BaseException:
            self.broke()
            raise

    def end(self) -> None:
        """Records what has come as the whole answer."""
        if self.head is None:
            return
        if self.overfull:
            self._run.finish_without_body(self.head, "too_large")
        else:
            # The head has left already, so a late attempt cannot hand over the winner's answer any more.
            self._run.finish(self.head, b"".join(self._kept))

    def broke(self, reason: str = "answer_broken") -> bool:
        """Records that the answer never gets whole; False where it has no head, and so was not begun."""
        if self.head is None:
            return False
        self._run.finish_without_body(self.head, reason)
        return True

    def _take(self) -> bytes:
        chunk = self._run.call(next, self._source)
        self._note(chunk)
        return chunk

    def _note(self, chunk: bytes) -> None:
        # A copy of whatever else holds bytes, for its owner may fill it anew; and what holds none, such as
        # a text, raises here and not where the chunks are put together.
        held = chunk if type(chunk) is bytes else bytes(memoryview(chunk))
        self.passed = self.passed or bool(held)
        self._size += len(held)
        if self.overfull:
            self._kept.clear()
        else:
            self._kept.append(held)
