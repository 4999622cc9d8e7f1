"""The scene with a batch of payouts that is killed at half and simply run again."""

from __future__ import annotations

import signal
import subprocess
import time

from ledger import Charge, lines
from processes import LOOPBACK, last_words, running
from stage import Stage

COUNT = 1000
THREADS = 4
PATIENCE = 60.0


def killed_batch(stage: Stage) -> None:
    """A thousand payouts; the process is killed at half and run again from the beginning."""
    for number in range(1, COUNT + 1):
        stage.owe(Charge("payouts", f"payout-{number:04}", 1000 + number))
    # What was under way at the kill is asked about once more, under the same key.
    stage.may_ask_again = THREADS
    log = stage.stack.directory / "payouts.log"
    command = [
        *("payouts.py", str(stage.stack.directory / "payouts.db")),
        *(f"http://{LOOPBACK}:{stage.stack.network_port}", str(COUNT)),
    ]
    with running(command, log) as first:
        at_kill = watch(stage, first, until=COUNT // 2)
        first.kill()
        first.wait()
    stage.note(f"SIGKILL to the batch at {at_kill} of {COUNT:,}")
    with running(command, log) as second:
        watch(stage, second, until=COUNT + 1)
        second.wait(timeout=PATIENCE)
    stage.note(f"the second run ended: {last_words(log)}")
    stage.must(first.returncode == -signal.SIGKILL, f"the first run ended by itself: {last_words(log)}")
    stage.must(second.returncode == 0, f"the second run failed: {last_words(log)}")
    stage.report(
        sent=f"{COUNT:,} payouts, killed at {at_kill}, run again from the beginning",
        came_back=last_words(log),
    )


def watch(stage: Stage, batch: subprocess.Popen[bytes], *, until: int) -> int:
    """Shows how far the network's ledger is, up to a number of payouts or the end of the batch."""
    deadline = time.monotonic() + PATIENCE
    done = 0
    while done < until and time.monotonic() < deadline:
        ended = batch.poll() is not None
        done = sum(line["merchant"] == "payouts" for line in lines(stage.stack.ledger, growing=True))
        stage.progress(done, COUNT)
        if ended:
            break
        time.sleep(0.03)
    return done
