"""HTTPPolicy: the one list of HTTP options, the same names in every adapter; frozen, checked when made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias, TypedDict

from idemcore.canonical import Canonicalizer
from idemcore.errors import ConfigurationError
from idemcore.http.answer import HTTPAnswer
from idemcore.http.callables import refuse_unfit
from idemcore.http.fingerprint_parts import query_parameters
from idemcore.http.headers import HeaderFilter
from idemcore.http.kept_answers import Keep, successes
from idemcore.http.key_in_body import KeyOf, key_reader
from idemcore.http.option_types import check_type
from idemcore.http.problem import TYPE_PREFIX, Refusals, Render
from idemcore.policy import IdentifiedBy, OnAbandoned, OnMismatch, Policy

SAFE_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
"""Never guarded: safe to repeat by definition (RFC 9110, section 9.2.1)."""
REPLAYED_HEADER: Final = "Idempotent-Replayed"

Redact: TypeAlias = Callable[[HTTPAnswer], HTTPAnswer]
"""Takes what is about to be kept and returns what may be kept of it."""


class HTTPOptions(TypedDict, total=False):
    """The options by name, as a route or a middleware takes them; each is described in `HTTPPolicy`."""

    header: str
    key: str | KeyOf
    methods: Collection[str]
    operation: Literal["http", "route"]
    identity: IdentifiedBy
    exclude: Collection[str]
    exclude_query: Collection[str]
    canonicalizer: Canonicalizer
    keep: Keep
    keep_body: bool
    redact: Redact
    keep_headers: Collection[str]
    drop_headers: Collection[str]
    on_mismatch: OnMismatch
    on_abandoned: OnAbandoned
    unknown: tuple[type[BaseException], ...]
    wait: timedelta
    retention: timedelta
    lease: timedelta
    max_hold: timedelta
    max_request_bytes: int
    max_response_bytes: int
    fail_open: bool
    statuses: Mapping[str, int]
    problem_types: str
    render: Render
    replayed_header: str


_CORE: Final = Policy()
_SHARED: Final = frozenset(field.name for field in fields(Policy) if field.init) - {"keep"}
"""What an engine's policy has too and means the same by. Its `keep` is about exceptions, ours about answers."""
_ROOMY: Final = Policy(lease=timedelta.resolution, max_hold=timedelta.max, retention=timedelta.max)
"""Beside these any duration is right, so that one which is given alone is looked at by itself."""


@dataclass(frozen=True, kw_only=True)
class HTTPPolicy:
    """How one kind of request is protected.

    What `Policy` has too comes from the engine's, where an adapter is not given it; the defaults here are
    those of an engine without a policy of its own.

    Attributes:
        header: name of the header that carries the key.
        key: where the key stands instead: a JSON Pointer into the body, such as ``"/id"`` for the event id of
            a webhook, or a callable that takes a `Request`. None found is the same as no header.
        methods: guarded methods; POST and PATCH by default, PUT and DELETE by choice, safe ones never.
        operation: what a key is unique in, beside its scope: everything (``http``: the same key on another
            route is refused), or its method and route (``route``: there it is another operation). ``http``
            by default; ``route`` with `key`, since ids of different senders may well be equal.
        identity: ``key``, or ``key+content``: the same key with a different request is then another
            operation, see `Policy`.
        exclude: what of the body does not count: JSON Pointers with ``*``, or bare names of top-level
            members; these are left out of forms too.
        exclude_query: query parameters that do not count.
        canonicalizer: the whole rule by which requests are compared, instead of `exclude` and
            `exclude_query`: for digests with a key of your own, and to accept an older rule's records for one
            retention after a change. `query_parameters` names parameters in it.
        keep: which answers are kept: `successes`, `successes_and` some others, `final_answers`,
            `everything`, or a predicate of your own on an `AnswerHead`. A 2xx or 3xx that is not kept counts as
            done all the same: its retry is told so, and runs nothing.
        keep_body: whether what is kept may be stored. If not, a retry runs nothing and is told to look the
            result up.
        redact: what may be stored of an answer, for secrets that are shown once: takes it and returns another.
        keep_headers: names that are kept although they are not by default, such as ``X-Request-Id``.
        drop_headers: names that are not kept although they are by default.
        on_mismatch: what the same key with a different request gets: ``refuse``, or ``ignore``.
        on_abandoned: ``rerun`` or ``block``, see `Policy`.
        unknown: exceptions of the view that leave it open whether the work was done, see `Policy`. One of
            them is settled before an answer is made of it, so `keep` is not asked about that. On WSGI:
            exceptions that leave the application; most frameworks turn them into a 500: use
            ``on_abandoned="block"``, or ``current_attempt().unknown(...)`` in the view.
        wait: how long a request waits for the first one to finish before it gets 409; how many wait at a
            time is the engine's `max_waiters`.
        retention: how long an answer is kept, from completion.
        lease: how long a claim stands without renewal.
        max_hold: how long a request may hold its claim at the most.
        max_request_bytes: a larger body of a request with a key is refused (413).
        max_response_bytes: a larger answer reaches its client whole and is not kept; its retries are told.
        fail_open: run unprotected while the store is down, instead of refusing (503); not where this process
            knows of a run of the same operation.
        statuses: of refusals, by their code, where they are to differ: ``{"idempotency_key_reuse": 409}``
            for clients that were promised that for a different request.
        problem_types: what the refusals' type URIs begin with, where your own pages describe them.
        render: makes the body of refusals in your own style, see `Problem`.
        replayed_header: name of the header that marks a replay.

    Raises:
        ConfigurationError: an option is wrong.
    """

    header: str = "Idempotency-Key"
    key: str | KeyOf | None = None
    methods: Collection[str] = ("POST", "PATCH")
    operation: Literal["http", "route"] | None = None
    identity: IdentifiedBy = _CORE.identity
    exclude: Collection[str] = ()
    exclude_query: Collection[str] = ()
    canonicalizer: Canonicalizer | None = None
    keep: Keep = successes
    keep_body: bool = True
    redact: Redact | None = None
    keep_headers: Collection[str] = ()
    drop_headers: Collection[str] = ()
    on_mismatch: OnMismatch = _CORE.on_mismatch
    on_abandoned: OnAbandoned = _CORE.on_abandoned
    unknown: tuple[type[BaseException], ...] = ()
    wait: timedelta = _CORE.wait
    retention: timedelta = _CORE.retention
    lease: timedelta = _CORE.lease
    max_hold: timedelta = _CORE.max_hold
    max_request_bytes: int = 10 << 20
    max_response_bytes: int = 1 << 20
    fail_open: bool = False
    statuses: Mapping[str, int] | None = None
    problem_types: str = TYPE_PREFIX
    render: Render | None = None
    replayed_header: str = REPLAYED_HEADER

    def __post_init__(self) -> None:
        for option in fields(self):
            check_type(option.name, getattr(self, option.name))
        methods = frozenset(method.upper() for method in self.methods)
        if methods & SAFE_METHODS:
            raise ConfigurationError(
                "GET, HEAD, OPTIONS and TRACE are safe to repeat by definition (RFC 9110, section 9.2.1) "
                "and are never guarded."
            )
        object.__setattr__(self, "methods", methods)
        for name in ("exclude", "exclude_query"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.operation is None:
            object.__setattr__(self, "operation", "http" if self.key is None else "route")
        if self.operation not in ("http", "route"):
            raise ConfigurationError(f"operation is 'http' or 'route', not {self.operation!r}.")
        for name in ("keep", "redact", "render"):
            value = getattr(self, name)
            if not callable(value) and (value is not None or name == "keep"):
                raise ConfigurationError(
                    f"{name} is a function; for keep there are successes, successes_and(402), final_answers "
                    "and everything in idemcore.http."
                )
            refuse_unfit(name, value)
        # These are made once for nothing, so that a wrong option fails at start-up, not at a request.
        self.core_policy()
        self.rule()
        self.refusals()
        self.header_filter()
        self.key_reader()

    @classmethod
    def of(cls, options: HTTPOptions, core: Policy = _CORE) -> HTTPPolicy:
        """The policy that these options make.

        Args:
            options: what was given.
            core: the engine's, for what was not given and is the same thing there.

        Raises:
            ConfigurationError: a name is no option's, or a value is wrong.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                raise ConfigurationError(
                    f"There is no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else ".")
                )
        shared: dict[str, Any] = {name: getattr(core, name) for name in _SHARED}
        return cls(**{**shared, **options})

    @classmethod
    def check(cls, options: HTTPOptions) -> None:
        """Looks at options by themselves, before it is known which others they will stand beside.

        Raises:
            ConfigurationError: a name is no option's, or a value is wrong beside whatever others.
        """
        cls.of(options, _ROOMY)

    def core_policy(self) -> Policy:
        """The part that the engine reads."""
        return Policy(**{name: getattr(self, name) for name in _SHARED})

    def rule(self) -> Canonicalizer:
        """The rule by which this policy's requests are compared."""
        if self.canonicalizer is None:
            return Canonicalizer(exclude=(*self.exclude, *query_parameters(*self.exclude_query)))
        if not isinstance(self.canonicalizer, Canonicalizer):
            raise ConfigurationError("canonicalizer is a Canonicalizer.")
        if self.exclude or self.exclude_query:
            raise ConfigurationError(
                "A canonicalizer has an exclude of its own: use that, not another beside it."
            )
        if self.canonicalizer.on_invalid != "raw":
            raise ConfigurationError(
                "Bodies that are no JSON are the application's to refuse: use a Canonicalizer that compares "
                "them as they came, on_invalid='raw'."
            )
        return self.canonicalizer

    def refusals(self) -> Refusals:
        """How this policy's refusals are told."""
        return Refusals(self.statuses, self.problem_types, self.render)

    def header_filter(self) -> HeaderFilter:
        """What is kept of an answer's header fields."""
        return HeaderFilter(self.keep_headers, self.drop_headers)

    def key_reader(self) -> KeyOf | None:
        """What finds the key in a request; None where it comes in the header."""
        return key_reader(self.key, self.max_request_bytes) if self.key is not None else None
