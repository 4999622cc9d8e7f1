"""A consumer whose queue delivers some messages again: `python consumer.py database.db`.

Every queue with acknowledgements does: when a consumer dies, when its acknowledgement gets lost, when it was
slow. The key is the message's own id, given by whoever sent it; the queue's delivery id is another each time.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

from idemcore import CallerError, Engine, OperatorNeeded, TryLater
from idemcore_function import idempotent

idem = Engine()
shipped: list[str] = []


@idempotent(idem, key="{message[id]}", namespace="orders.ship", exclude=["/message/sent_at"])
def ship(message: dict[str, Any]) -> None:
    shipped.append(message["id"])


@dataclass
class Queue:
    """Stands for a broker: what is put back comes again, and what is set aside waits for a person."""

    messages: deque[dict[str, Any]]
    acknowledged: int = 0

    def __post_init__(self) -> None:
        self.set_aside: list[dict[str, Any]] = []


def consume(queue: Queue) -> None:
    while queue.messages:
        message = queue.messages.popleft()
        try:
            ship(message)
        except TryLater:  # another consumer has it in hand, or the store is away: nothing was done
            queue.messages.append(message)
        except (CallerError, OperatorNeeded):  # no id, another message under this id, or an open outcome
            queue.set_aside.append(message)
        else:  # shipped now or before; an exception of `ship` itself ends the loop, and the message comes again
            queue.acknowledged += 1


def main(database: str) -> None:
    idem.bind(f"sqlite:///{database}")
    idem.create_schema()
    first: dict[str, Any] = {"id": "m-1", "order": 7, "sent_at": "10:00"}
    again = {**first, "sent_at": "10:05"}  # sent again by a producer that got no answer
    other = {**first, "order": 8}  # a producer's mistake: one id for two orders
    queue = Queue(deque([first, {"id": "m-2", "order": 9}, again, other, {"id": "", "order": 10}]))
    consume(queue)
    print(f"{len(shipped)} shipped, {queue.acknowledged} acknowledged, {len(queue.set_aside)} set aside")


if __name__ == "__main__":
    main(sys.argv[1])
