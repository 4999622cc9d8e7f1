"""The tasks of a Celery worker that dies in the middle of one; `test_celery_worker.py` starts it.

    celery --app tests.function.celery_worker worker

The broker, its options, the database and the ledger come from the environment. The ledger is a provider's
own: it is written before the worker dies, and each line is one request with its key.
"""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta
from pathlib import Path

from celery import Celery, Task

from idemcore import Engine, TryLater, current_attempt
from idemcore_function import idempotent

app = Celery("refunds", broker=os.environ["CELERY_TEST_BROKER"])
app.conf.broker_transport_options = json.loads(os.environ["CELERY_TEST_TRANSPORT"])
app.conf.task_default_queue = os.environ["CELERY_TEST_QUEUE"]
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_connection_retry_on_startup = True
idem = Engine(os.environ["CELERY_TEST_DATABASE"])
LEDGER = Path(os.environ["CELERY_TEST_LEDGER"])


@app.task(
    bind=True,
    acks_late=True,
    reject_on_worker_lost=True,
    autoretry_for=(TryLater,),
    retry_backoff=True,
    max_retries=None,
)
@idempotent(idem, key="{refund_id}", namespace="refunds.pay", exclude={"self"}, lease=timedelta(seconds=2))
def pay_refund(self: Task, refund_id: str, amount: int) -> str:
    """Asks the provider, and dies before anybody has recorded it, the first time."""
    attempt = current_attempt()
    with LEDGER.open("a") as ledger:
        ledger.write(f"{attempt.child_key('bank')}\n")
    if attempt.number == 1:
        doomed = os.getppid() if os.environ["CELERY_TEST_KILLS"] == "worker" else os.getpid()
        os.kill(doomed, signal.SIGKILL)
        signal.pause()  # a child may outlive its worker for a moment
    return f"{amount} refunded"
