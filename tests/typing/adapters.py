"""What a user's type checker makes of the adapters. Not run: mypy and pyright read it (`make check`)."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import assert_type

from flask import Flask

from idemcore import SINGLE_TENANT, Engine
from idemcore_flask import Idempotency
from idemcore_wsgi import IdempotencyMiddleware

idem = Engine("memory://")
app = Flask("shop")

idempotency = Idempotency()
idempotency.init_app(app, engine=idem, scope=lambda: ("tenant", 7), protect="optional")
Idempotency(app, engine=idem, scope=SINGLE_TENANT)


@idempotency.required
def bare(order: int) -> str:
    return str(order)


@idempotency.optional(exclude=["/trace_id"], retention=timedelta(days=2), on_mismatch="ignore")
def called(order: int, *, rush: bool = False) -> tuple[str, int]:
    return str(order), 201 if rush else 202


@idempotency.required(scope=lambda: "sender", key="/id")
@idempotency.optional(scope=SINGLE_TENANT)
def hook() -> str:
    return ""


@app.post("/orders")
@idempotency.required
async def awaited() -> dict[str, str]:
    return {}


# A protected view keeps its signature.
assert_type(bare(1), str)
assert_type(hook(), str)
assert_type(called(1, rush=True), tuple[str, int])
unprotected: Callable[[int], str] = idempotency.exempt(bare)
bare("1")  # type: ignore[arg-type]

wrapped = IdempotencyMiddleware(
    app.wsgi_app,
    idem,
    scope=lambda environ: str(environ["REMOTE_USER"]),
    methods=("POST", "PUT"),
    statuses={"idempotency_key_reuse": 409},
)

assert_type(wrapped.__call__({}, lambda *_: lambda _: None), Iterable[bytes])

# An option that does not exist, or a value that it does not take, is an error.
idempotency.required(exclud=["/trace_id"])  # type: ignore[call-overload]
idempotency.required(on_abandoned="retry")  # type: ignore[call-overload]
idempotency.required(scope="sender")  # type: ignore[call-overload]
IdempotencyMiddleware(app.wsgi_app, idem)  # type: ignore[call-arg]
Idempotency(app, engine=idem, scope=1.5)  # type: ignore[arg-type]
