"""A Celery task that runs once, although with `acks_late` it is delivered again when its worker dies.

`@app.task` stands above `@idempotent`: what Celery calls is the protected function. The key comes from the
arguments, which a redelivery and a retry repeat; `self.request.id` would do for redeliveries alone.
"""

from __future__ import annotations

import sys

from celery import Celery
from celery.signals import worker_process_shutdown

from idemcore import Engine, TryLater, current_attempt
from idemcore_function import idempotent

app = Celery("refunds", broker="memory://", backend="cache+memory://")
idem = Engine()
refunded: list[str] = []


@worker_process_shutdown.connect
def close(**_: object) -> None:
    idem.close()  # a last try for what could not be recorded: the pool's processes skip Python's own exit


@app.task(
    bind=True,
    acks_late=True,
    reject_on_worker_lost=True,
    autoretry_for=(TryLater,),  # another worker has it in hand, or the store is away
    retry_backoff=True,
    max_retries=None,  # Celery's own three are used up before a dead worker's lease is over
)
@idempotent(idem, key="{refund_id}", namespace="refunds.pay", exclude={"self"})
def pay_refund(self, refund_id: str, amount: int) -> str:
    refunded.append(refund_id)
    return f"{amount} refunded under {current_attempt().child_key('bank')}"


def main(database: str) -> None:
    idem.bind(f"sqlite:///{database}")
    idem.create_schema()
    app.conf.task_always_eager = True
    results = [pay_refund.delay("r-1", 500).get() for _ in range(3)]
    print(f"{len(results)} deliveries, {len(refunded)} refund, {len(set(results))} answer")


if __name__ == "__main__":
    main(sys.argv[1])
