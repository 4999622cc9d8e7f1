"""Policy: one frozen value for each use of the engine; checked when it is made, read everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from idemcore.errors import ConfigurationError

OnMismatch: TypeAlias = Literal["refuse", "ignore"]
OnAbandoned: TypeAlias = Literal["rerun", "block"]
IdentifiedBy: TypeAlias = Literal["key", "key+content"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How one kind of operation is protected.

    Attributes:
        retention: how long a finished record is kept at the least, from completion; `max_hold` longer at
            the most. A retry that comes later runs again, so it must be longer than the client's whole
            retry window.
        lease: how long a claim stands without renewal. Longer than the slowest run, wherever claims
            are not renewed.
        max_hold: how long one claim may stand at the most, renewals included.
        on_mismatch: what the same key with a different request gets: ``refuse``, or ``ignore``, which
            replays the first answer anyway. A different request never takes a claim over.
        on_abandoned: what happens after a run that did not finish: its lease is over, or it raised or
            answered 5xx. ``rerun`` lets the same request run again, which repeats an effect that was
            not recorded. ``block`` leaves the outcome unknown after each of these, but for exceptions
            in `keep`, and runs nothing until an operator settles it.
        identity: what names an operation: the ``key``, so that it serves one request only; or
            ``key+content``, where the same key with a different request is another operation. Under that a
            change of the fingerprint rule makes a late retry another operation too.
        wait: how long a caller waits for a run in progress before it is told so. Zero refuses at once.
        keep: exceptions that are an answer: recorded, and raised again on replay.
        unknown: exceptions that leave it open whether the work was done, such as a provider's timeout:
            nothing runs again until an operator settles it. Where `keep` names a base class of one, or the
            other way round, the class nearer to the raised exception's own decides. An exception group that
            neither names is in doubt if one of its exceptions is, and kept if all of them are.
        lease_seconds: the lease as a number, as stores take it; made from it, like the two that follow.
        max_hold_seconds: likewise.
        retention_seconds: likewise.

    Raises:
        ConfigurationError: a duration is not positive (`wait`: negative), the lease is longer than
            `max_hold` or `retention`, or one class stands in both `keep` and `unknown`.
    """

    retention: timedelta = timedelta(hours=24)
    lease: timedelta = timedelta(seconds=30)
    max_hold: timedelta = timedelta(minutes=10)
    on_mismatch: OnMismatch = "refuse"
    on_abandoned: OnAbandoned = "rerun"
    identity: IdentifiedBy = "key"
    wait: timedelta = timedelta(0)
    keep: tuple[type[Exception], ...] = ()
    unknown: tuple[type[BaseException], ...] = ()
    lease_seconds: float = field(init=False, repr=False, compare=False)
    max_hold_seconds: float = field(init=False, repr=False, compare=False)
    retention_seconds: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("retention", "lease", "max_hold", "wait"):
            value = getattr(self, name)
            if not isinstance(value, timedelta):
                raise ConfigurationError(f"Policy.{name} is a datetime.timedelta, not {value!r}.")
            if value < timedelta(0) or (value == timedelta(0) and name != "wait"):
                raise ConfigurationError(f"Policy.{name} must be longer than zero.")
        if self.lease > self.max_hold:
            raise ConfigurationError("Policy.lease is longer than max_hold; raise max_hold too.")
        if self.lease > self.retention:
            raise ConfigurationError("Policy.lease is longer than retention; raise retention too.")
        if self.on_mismatch not in ("refuse", "ignore"):
            raise ConfigurationError(f"Policy.on_mismatch is 'refuse' or 'ignore', not {self.on_mismatch!r}.")
        if self.on_abandoned not in ("rerun", "block"):
            raise ConfigurationError(f"Policy.on_abandoned is 'rerun' or 'block', not {self.on_abandoned!r}.")
        if self.identity not in ("key", "key+content"):
            raise ConfigurationError(f"Policy.identity is 'key' or 'key+content', not {self.identity!r}.")
        for name, base in (("keep", Exception), ("unknown", BaseException)):
            classes = getattr(self, name)
            if not isinstance(classes, tuple) or not all(
                isinstance(cls, type) and issubclass(cls, base) for cls in classes
            ):
                raise ConfigurationError(f"Policy.{name} is a tuple of exception classes.")
        both = [cls.__name__ for cls in self.keep if cls in self.unknown]
        if both:
            raise ConfigurationError(
                f"Policy.keep and Policy.unknown both name {', '.join(both)}: an answer, or an open "
                "outcome? Take it out of one of them."
            )
        for name in ("lease", "max_hold", "retention"):
            object.__setattr__(self, f"{name}_seconds", getattr(self, name).total_seconds())

    def content_of(self, fingerprint: str) -> str | None:
        """What `identify` takes as content: the fingerprint under ``identity="key+content"``, else None."""
        return fingerprint if self.identity == "key+content" else None
