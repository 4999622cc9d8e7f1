"""What a user's type checker makes of the core. Not run: mypy and pyright read it (`make check`)."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from datetime import timedelta
from typing import assert_never, assert_type

from sqlalchemy import Connection
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from idemcore import (
    SINGLE_TENANT,
    Attempt,
    Engine,
    MemoryStore,
    Policy,
    Replay,
    canonicalize,
    canonicalize_json,
    current_attempt,
    fingerprint,
    fingerprint_json,
)

idem = Engine("memory://")
Engine(MemoryStore(), policy=Policy(lease=timedelta(seconds=5)))
Engine().bind("memory://")

assert_type(canonicalize({"amount": 10}), bytes)
assert_type(canonicalize_json(b"{}"), bytes)
assert_type(fingerprint({"amount": 10}), str)
assert_type(fingerprint_json(b"{}"), str)

begun = idem.begin(scope=SINGLE_TENANT, operation="charge", key="k1", fingerprint=fingerprint(1))
assert_type(begun, Attempt | Replay)

# The two arms are all there is.
match begun:
    case Replay(outcome=outcome):
        assert_type(outcome.body, bytes)
    case Attempt() as attempt:
        with attempt:
            assert_type(attempt.child_key("provider"), str)
            attempt.complete(b"done", {})
    case _:
        assert_never(begun)

assert_type(current_attempt(), Attempt)

# What must be given, and given right, is asked for.
idem.begin(operation="charge", key="k1", fingerprint="")  # type: ignore[call-arg]
idem.begin(scope=1.5, operation="charge", key="k1", fingerprint="")  # type: ignore[arg-type]
Policy(on_abandoned="retry")  # type: ignore[arg-type]
Policy(lease=30)  # type: ignore[arg-type]


class AppSession(Session):
    """As Flask-SQLAlchemy has one."""


def order(session: Session, scoped: scoped_session[AppSession], connection: Connection) -> None:
    """What may be joined: sessions, one's own kinds and scoped ones included, and connections; no factory."""
    attempt = current_attempt()
    assert_type(attempt.join(session), None)
    attempt.join(scoped)
    attempt.join(connection)
    attempt.join(sessionmaker())  # type: ignore[arg-type]
