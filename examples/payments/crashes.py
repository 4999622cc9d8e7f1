"""The scenes in which a worker process dies, or sleeps, between the charge and its record.

The network charges at once and holds its answer back, so that the ledger shows the charge while the worker
still waits; that is the moment in which it is killed or stopped.
"""

from __future__ import annotations

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import operator_desk
from ledger import lines
from network import ANSWERS_LATE
from stage import Order, Stage, same

PATIENCE = 10.0


def killed(stage: Stage) -> None:
    """A worker is killed between the charge and its record; a takeover asks the network with the same key."""
    order, other = stage.order("120.00", card=ANSWERS_LATE), stage.order("1200.00", card=ANSWERS_LATE)
    stage.owe(order.charge(), asked=2)
    stage.must_not_charge(other.charge())
    with ThreadPoolExecutor(1) as background:
        first = background.submit(stage.send, order, key="killed-1")
        signal_worker(stage, worker_of(stage, order), signal.SIGKILL)
        cut_off = first.result()
    early = stage.send(order, key="killed-1")
    other_early = stage.send(other, key="killed-1")
    taken_over = stage.send_until_done(order, key="killed-1")[-1]
    other_late = stage.send(other, key="killed-1")
    stage.must(cut_off.lost, f"the killed worker's client got {cut_off}")
    stage.must(
        early.status == 409 and early.code == "request_in_progress" and (early.retry_after or 0) >= 1,
        f"before the lease was over a retry got {early}, not 409 with Retry-After",
    )
    stage.must(taken_over.status == 201 and not taken_over.replayed, f"the takeover got {taken_over}, not 201")
    for answer in (other_early, other_late):
        stage.must(answer.code == "idempotency_key_reuse", f"another amount got {answer}, not 422")
    stage.must(len(provider_keys(stage, order)) == 1, "the takeover asked the network under another key")
    stage.report(
        sent="€120.00, worker killed after the charge, sent again and again",
        came_back=f"{cut_off}; {early}; after the lease {taken_over}",
    )


def blocked(stage: Stage) -> None:
    """The same towards a bank that knows no keys: nothing runs again until an operator has looked."""
    order = stage.order("640.00", card=ANSWERS_LATE)
    stage.owe(order.charge())
    with ThreadPoolExecutor(1) as background:
        first = background.submit(stage.send, order, key="blocked-1", path="/transfers")
        signal_worker(stage, worker_of(stage, order), signal.SIGKILL)
        cut_off = first.result()
    early = stage.send(order, key="blocked-1", path="/transfers")
    unknown = stage.send_until_done(order, key="blocked-1", path="/transfers")[-1]
    still = stage.send(order, key="blocked-1", path="/transfers")
    found = operator_desk.settle(stage.stack, order.charge(), key="blocked-1")
    stage.note(f"operator: {found}")
    settled = stage.send(order, key="blocked-1", path="/transfers")
    stage.must(cut_off.lost, f"the killed worker's client got {cut_off}")
    stage.must(early.code == "request_in_progress", f"before the lease was over a retry got {early}")
    for answer in (unknown, still):
        stage.must(
            answer.code == "outcome_unknown" and answer.retry_after is None,
            f"after the lease a retry got {answer}, not 409 outcome_unknown",
        )
    stage.must(settled.status == 201 and settled.replayed, f"after the operator a retry got {settled}")
    stage.report(
        sent="€640.00 by transfer, worker killed after it, sent again",
        came_back=f"{cut_off}; {early}; after the lease {unknown}; after the operator {settled}",
    )


def wakes_late(stage: Stage) -> None:
    """A worker sleeps past its lease and then finishes: it cannot overwrite what the takeover recorded."""
    order = stage.order("88.00", card=ANSWERS_LATE)
    stage.owe(order.charge(), asked=2)
    with ThreadPoolExecutor(1) as background:
        first = background.submit(stage.send, order, key="late-worker-1", who="client of the sleeper")
        worker = worker_of(stage, order)
        signal_worker(stage, worker, signal.SIGSTOP)
        winner = stage.send_until_done(order, key="late-worker-1")[-1]
        signal_worker(stage, worker, signal.SIGCONT)
        late = first.result()
    again = stage.send(order, key="late-worker-1")
    stage.must(winner.status == 201 and not winner.replayed, f"the takeover got {winner}, not 201")
    stage.must(same(late, winner), "the late worker's client did not get the winner's answer")
    stage.must(again.replayed and same(again, winner), "a later retry did not get the winner's answer")
    stage.must(len(provider_keys(stage, order)) == 1, "the takeover asked the network under another key")
    stage.report(
        sent="€88.00, worker stopped, sent again, worker woken",
        came_back=f"takeover {winner}; late worker's client {late}, the winner's answer",
    )


def committed(stage: Stage) -> None:
    """An order and its record are one transaction; the worker is killed after its commit, before the answer."""
    order = stage.order("310.00", card=ANSWERS_LATE)
    stage.must_order(order)
    with ThreadPoolExecutor(1) as background:
        first = background.submit(stage.send, order, key="order-1", path="/orders")
        signal_worker(stage, worker_of(stage, order, stage.stack.notices), signal.SIGKILL)
        cut_off = first.result()
    early = stage.send(order, key="order-1", path="/orders")
    told = stage.send_until_done(order, key="order-1", path="/orders")[-1]
    stage.must(cut_off.lost, f"the killed worker's client got {cut_off}")
    stage.must(early.code == "request_in_progress", f"before the lease was over a retry got {early}")
    stage.must(told.code == "response_not_replayable", f"after the lease a retry got {told}, not 422")
    stage.report(
        sent="an order of €310.00 on account, worker killed after the commit, sent again",
        came_back=f"{cut_off}; {early}; after the lease {told}",
    )


def worker_of(stage: Stage, order: Order, ledger: Path | None = None) -> int:
    """The process that had this charged, as soon as the ledger shows it; another one may be given."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in lines(ledger or stage.stack.ledger, growing=True):
            if line["reference"] == order.reference and (found := re.search(r"process (\d+)", line["by"])):
                return int(found[1])
        time.sleep(0.01)
    raise TimeoutError("the network was never asked to charge")


def signal_worker(stage: Stage, worker: int, number: signal.Signals) -> None:
    os.kill(worker, number)
    stage.note(f"{number.name} to worker {worker}")


def provider_keys(stage: Stage, order: Order) -> set[str | None]:
    """The keys under which the network was asked about an order."""
    return {line["key"] for line in lines(stage.stack.asked) if line["reference"] == order.reference}


CRASHES = {
    "killed after the charge": killed,
    "the same, blocked": blocked,
    "a worker wakes late": wakes_late,
    "killed after the commit": committed,
}
