"""@idempotent and what can be asked of a decorated function; all its work is in `operation`.

A plain function comes back, with its signature. What the decorator knows hangs on it as an attribute.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial, wraps
from typing import Any, Final, Literal, ParamSpec, TypeVar, overload
from weakref import ref

from idemcore import SINGLE_TENANT, Canonicalizer, ConfigurationError, Engine, Policy, Result
from idemcore.codec import Codec
from idemcore.identity import Identity
from idemcore.policy import OnAbandoned, OnMismatch

from .decoratable import is_task, refuse_what_does_not_return
from .naming import namespace_of, reserve_name
from .operation import Operation, Returned
from .result_type import Unannotated, annotations_of, codec_for
from .source import KeySource, ScopeSource

P = ParamSpec("P")
R = TypeVar("R")

RETENTION: Final = timedelta(days=30)
"""How long a function's outcome is kept at the least, where it says nothing: jobs are run again days later."""

_MARK: Final = "__idempotent__"


def idempotent(
    engine: Engine,
    *,
    key: KeySource,
    scope: ScopeSource = SINGLE_TENANT,
    namespace: str | None = None,
    exclude: Iterable[str] = (),
    accept: Iterable[Canonicalizer] = (),
    canonicalizer: Canonicalizer | None = None,
    keep: tuple[type[Exception], ...] | None = None,
    unknown: tuple[type[BaseException], ...] | None = None,
    codec: Codec[Any] | None = None,
    unannotated: Unannotated = "json",
    retention: timedelta | None = None,
    lease: timedelta | None = None,
    max_hold: timedelta | None = None,
    on_mismatch: OnMismatch | None = None,
    on_abandoned: OnAbandoned | None = None,
    wait: timedelta | None = None,
    policy: Policy | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes each operation of a function happen once: a retry gets what the first run returned.

    An exception passes unchanged and leaves the key free for a retry, unless `keep` or `unknown` names
    it. Where the function may have had its effect before it raised, say so with `unknown`, or give the
    provider ``current_attempt().child_key(…)``.

    Args:
        engine: what keeps the records.
        key: what names one operation: a template over the arguments such as ``"{invoice.id}"``, a
            callable that takes those of the arguments that it names, or ALL_ARGUMENTS.
        scope: who is asking: likewise a template or a callable, or a value. Where the arguments come from
            several tenants, name the tenant here; by default all callers share their keys.
        namespace: the operation's name in the store, by default ``module:qualified.name``; a function of a
            script, and one without a name, must be given it. Given one, the function can be renamed and moved
            without losing its records. Two functions that share an engine have two names.
        exclude: arguments, or parts of them by JSON Pointer (``/invoice/sent_at``), in which a retry may
            differ, and what cannot be compared, such as a session.
        accept: the rules of older deploys whose records are still kept, such as ``[Canonicalizer()]`` where
            `exclude` is new: their retries are told from other requests by the rule of their time.
        canonicalizer: the whole rule instead of `exclude` and `accept`, over the arguments by name: for
            keyed fingerprints, or one rule that many functions share.
        keep: exceptions that are an answer: recorded, and raised again by a retry.
        unknown: exceptions that leave it open whether the work was done, such as a provider's timeout:
            nothing runs again until an operator settles it. Where `keep` and `unknown` both match, the class
            nearer to the raised one decides.
        codec: how the result is kept; by default as its annotated type says, through pydantic.
        unannotated: without an annotation: ``json`` keeps plain JSON values, ``refuse`` raises here.
        retention: how long an outcome is kept; 30 days, or as the engine's policy where that is longer.
        lease: see `Policy`; as the engine's policy where it is not given.
        max_hold: as `lease`.
        on_mismatch: as `lease`.
        on_abandoned: as `lease`.
        wait: as `lease`.
        policy: the base of all these, instead of the engine's, its own retention included: 24 hours, where
            neither it nor `retention` says otherwise.

    Returns:
        A decorator that returns a plain function of the same signature.

    Raises:
        ConfigurationError: when decorating: no engine, an async or generator function, a key or scope that
            does not fit the parameters, a method whose key leaves its object open, a namespace that another
            function has, an argument of two classes that only their names tell apart.
        ResultNotSerializable: when decorating: results of the annotated type cannot be kept.
    """
    if not isinstance(engine, Engine):
        raise ConfigurationError(
            f"@idempotent takes an Engine, not {type(engine).__name__}: make one with idem = Engine(url) first."
        )
    if policy is None:
        policy = replace(engine.policy, retention=max(engine.policy.retention, RETENTION))
    given: dict[str, Any] = {
        "keep": keep,
        "unknown": unknown,
        "retention": retention,
        "lease": lease,
        "max_hold": max_hold,
        "on_mismatch": on_mismatch,
        "on_abandoned": on_abandoned,
        "wait": wait,
    }
    used = replace(policy, **{name: value for name, value in given.items() if value is not None})

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        refuse_what_does_not_return(function)
        if hasattr(function, _MARK):
            raise ConfigurationError("This function is decorated with @idempotent already; once is enough.")
        name = namespace if namespace is not None else namespace_of(function)
        frame = sys._getframe(1)
        annotations = annotations_of(function, frame)
        operation = Operation(
            engine,
            function,
            key=key,
            scope=scope,
            namespace=name,
            exclude=exclude,
            accept=accept,
            canonicalizer=canonicalizer,
            declared=annotations,
            codec=codec if codec is not None else codec_for(annotations, unannotated, name),
            policy=used,
        )
        run = operation.run

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            value: R = run(args, kwargs).value
            return value

        reserve_name(engine, name, call, frame)
        setattr(call, _MARK, (operation, ref(call)))  # to hold itself it would outlive its last holder
        return call

    return decorate


def outcome(function: Callable[P, R]) -> Callable[P, Result[R]]:
    """The function, to be called for its whole outcome: ``outcome(charge)(invoice).replayed``.

    Raises:
        ConfigurationError: the function is not decorated with @idempotent.
    """
    operation, first, named = operation_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result[R]:
        return operation.run((*first, *args), {**named, **kwargs})

    return call


def key_of(function: Callable[P, object]) -> Callable[P, Identity]:
    """The function, to be called for the identity that its arguments have; nothing is run or claimed.

    Raises:
        ConfigurationError: the function is not decorated with @idempotent.
    """
    operation, first, named = operation_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Identity:
        return operation.read((*first, *args), {**named, **kwargs}).identity

    return call


def forget(function: Callable[P, object]) -> Callable[P, bool]:
    """The function, to be called for its record to be removed, as an operator decided.

    ``forget(charge)(invoice)`` frees the key whatever its record says: the next call runs, and an effect
    that was there already happens again. It returns True where no record stands now, and False where a
    run is under way or has just ended: look again.

    Raises:
        ConfigurationError: the function is not decorated with @idempotent.
    """
    operation, first, named = operation_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> bool:
        return operation.forget(operation.read((*first, *args), {**named, **kwargs}))

    return call


@overload
def resolve(function: Callable[P, object], verdict: Literal["not_done", "done"]) -> Callable[P, bool]: ...


@overload
def resolve(function: Callable[P, R], verdict: Literal["returned"], value: R, /) -> Callable[P, bool]: ...


def resolve(
    function: Callable[P, Any], verdict: Literal["not_done", "done", "returned"], *value: Any
) -> Callable[P, bool]:
    """The function, to be called for an outcome to be settled that no run settled, as an operator found it.

    ``resolve(charge, "returned", Receipt("R-1"))(invoice)`` gives retries that receipt, kept as the function
    itself would keep it; ``"not_done"`` lets the same call run again; ``"done"`` answers retries with
    NotReplayable. It returns True where the verdict was applied, and False where nothing is open: look again.

    Raises:
        ConfigurationError: the function is not decorated with @idempotent, or a value is missing or too much.
        ResultNotSerializable: the value cannot be kept, or is of another type than the function declares.
        FingerprintMismatch: other arguments were recorded under this key.
        AlreadyCommitted: ``"not_done"`` of a call whose transaction was committed (`Attempt.join`).
    """
    if verdict not in ("not_done", "done", "returned") or len(value) != (verdict == "returned"):
        raise ConfigurationError("A verdict is 'not_done', 'done', or 'returned' with what was returned.")
    operation, first, named = operation_of(function)
    found = Returned(*value) if verdict == "returned" else verdict

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> bool:
        return operation.resolve(operation.read((*first, *args), {**named, **kwargs}), found)

    return call


def operation_of(function: Callable[..., object]) -> tuple[Operation, tuple[Any, ...], dict[str, Any]]:
    """What a decorated function knows, and the arguments that it is bound to as a method or a partial.

    A task of Celery's stands for the function that it calls, and a bound one is that function's first argument.

    Raises:
        ConfigurationError: the function is not decorated with @idempotent.
    """
    plain: Any = function
    first: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    while isinstance(plain, partial):
        plain, first, named = plain.func, (*plain.args, *first), {**plain.keywords, **named}
    if is_task(plain) and not hasattr(plain, _MARK):
        plain = getattr(plain, "__wrapped__", plain)
    if inspect.ismethod(plain):
        plain, first = plain.__func__, (plain.__self__, *first)
    if not hasattr(plain, _MARK):
        raise ConfigurationError("This function is not decorated with @idempotent.")
    operation, decorated = getattr(plain, _MARK)
    if decorated() is not plain:
        raise ConfigurationError(
            "Another decorator stands above @idempotent; ask the function that @idempotent returned: it has a "
            "name of its own where that is written charge = idempotent(…)(function). In place of a task's "
            "run ask the task."
        )
    return operation, first, named
