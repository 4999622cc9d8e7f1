"""Celery tasks whose worker dies in the middle of them, cannot record them, or is told to try again; for
`test_celery_worker.py`.

    celery --app tests.function.celery_worker worker

The broker, its options, the database and the ledger come from the environment. The ledger is a provider's
own: it is written before the worker dies, and each line is one request with its key.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

from celery import Celery, Task
from celery.exceptions import Ignore, Reject
from celery.signals import worker_process_shutdown

from idemcore import Engine, StoreUnavailable, TryLater, current_attempt
from idemcore.record import Answer, Claim, Stored, Tombstone
from idemcore_function import idempotent

app = Celery("refunds", broker=os.environ["CELERY_TEST_BROKER"])
app.conf.broker_transport_options = json.loads(os.environ["CELERY_TEST_TRANSPORT"])
app.conf.task_default_queue = os.environ["CELERY_TEST_QUEUE"]
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_connection_retry_on_startup = True
idem = Engine(os.environ["CELERY_TEST_DATABASE"])
LEDGER = Path(os.environ["CELERY_TEST_LEDGER"])
UNDECIDED = LEDGER.with_name("undecided")
LEASE = timedelta(seconds=2)
TELLS = {"ignored": Ignore(), "rejected": Reject()}
ENDING: list[bool] = []
complete = idem.keeper.store.complete


@app.task(
    bind=True,
    acks_late=True,
    reject_on_worker_lost=True,
    autoretry_for=(TryLater,),
    retry_backoff=True,
    max_retries=None,
)
@idempotent(idem, key="{refund_id}", namespace="refunds.pay", exclude={"self"}, lease=LEASE)
def pay_refund(self: Task, refund_id: str, amount: int) -> str:
    """Asks the provider, and dies before anybody has recorded it, the first time."""
    attempt = current_attempt()
    with LEDGER.open("a") as ledger:
        ledger.write(f"{attempt.child_key('bank')}\n")
    if os.environ["CELERY_TEST_KILLS"] == "nobody":
        idem.keeper.store.complete = only_at_the_end  # type: ignore[method-assign] # for the engine of this worker
    elif attempt.number == 1:
        doomed = os.getppid() if os.environ["CELERY_TEST_KILLS"] == "worker" else os.getpid()
        os.kill(doomed, signal.SIGKILL)
        signal.pause()  # a child may outlive its worker for a moment
    return f"{amount} refunded"


@idempotent(idem, key="{payout_id}", namespace="payouts.send", on_abandoned="block", lease=LEASE)
def send(payout_id: str, amount: int) -> str:
    """Dies in the middle, the first time."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{payout_id}\n")
    if current_attempt().number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{amount} sent"


@app.task(
    acks_late=True, reject_on_worker_lost=True, autoretry_for=(TryLater,), retry_backoff=True, max_retries=None
)
def pay_out(payout_id: str, amount: int) -> str:
    """As docs/celery.md has it."""
    try:
        return send(payout_id, amount)
    except TryLater:
        raise
    except Exception as error:
        with UNDECIDED.open("a") as undecided:
            undecided.write(json.dumps([payout_id, amount, type(error).__name__]) + "\n")
        raise


@app.task(bind=True)
@idempotent(idem, key="{how}", namespace="payouts.postpone", exclude={"self"}, on_abandoned="block")
def postpone(self: Task, how: str) -> str:
    """Tells Celery, the first time, that it is to be tried again or left alone."""
    attempt = current_attempt()
    if attempt.number > 1:
        return "sent"
    if how == "released":
        attempt.release()
    raise self.retry(countdown=0) if how in ("retried", "released") else TELLS[how]


def only_at_the_end(claim: Claim, outcome: Answer | Tombstone) -> Stored:
    """A store that does not answer, but to the last try: the one that `close` makes in the main thread."""
    if ENDING and threading.current_thread() is threading.main_thread():
        return complete(claim, outcome)
    raise StoreUnavailable("away for a moment")


@worker_process_shutdown.connect
def close(**_: object) -> None:
    """As docs/celery.md has it."""
    ENDING.append(True)
    idem.close()
