"""What may happen to a request with a key: run, get the kept answer, or be refused; adapters ask here.

A refusal and a replay are both an `HTTPAnswer` to send as it is. Otherwise there is a `Run`: the adapter
runs its application, tells the `Run` how that ended, and sends the winner's answer where it is handed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import quote_from_bytes

from idemcore import events
from idemcore.attempt import Attempt
from idemcore.current import CURRENT
from idemcore.engine import Engine
from idemcore.errors import IdempotencyError, KeyMissing, RecordUnreadable, ReplayForbidden, StoreUnavailable
from idemcore.http.answer import HTTPAnswer, from_outcome
from idemcore.http.callables import verdict_of
from idemcore.http.cgi import header_variable
from idemcore.http.coding import readable
from idemcore.http.key import parse_key
from idemcore.http.policy import HTTPOptions, HTTPPolicy
from idemcore.http.request import Request, request_fingerprinter
from idemcore.http.run import Run
from idemcore.identity import Identity, Scope, identify
from idemcore.machine import Fingerprinter, tag_of
from idemcore.unfinished import close_coroutine

R = TypeVar("R")  # what an adapter's server calls a request

OPERATION: Final = "http"
_ESCAPED: Final = re.compile("[%\0\ud800-\udfff]")


class Guard:
    """One policy over one engine; made at start-up, shared by all threads.

    Most requests have no key and need none. What tells so is said here as plain attributes, for an adapter
    to look at without a call.

    Args:
        engine: where claims and answers are kept; its policy gives what `options` do not.
        options: see `HTTPPolicy`.
        required: whether a guarded request without a key is refused or goes straight through.

    Attributes:
        engine: as given.
        policy: what the options make over the engine's own.
        required: as given.
        methods: guarded methods, in upper case; requests with others go straight through.
        variable: the meta-variable in which the key's header arrives, see `idemcore.http.cgi`.
        key_in_body: whether the key stands in the body, where only reading it can tell.
        headless_pass: whether a request without the key's header goes straight through.

    Raises:
        ConfigurationError: an option is wrong, or does not go with the engine's policy.
    """

    def __init__(self, engine: Engine, options: HTTPOptions, *, required: bool = False) -> None:
        policy = HTTPPolicy.of(options, engine.policy)
        self.engine: Final = engine
        self.policy: Final = policy
        self.required: Final = required
        self.methods: Final = frozenset(policy.methods)
        self._by_route = policy.operation == "route"
        self._core = policy.core_policy()
        self._rule = policy.rule()
        self._header_filter = policy.header_filter()
        self._refusals = policy.refusals()
        self._key_of = policy.key_reader()
        self.variable: Final = header_variable(policy.header)
        self.key_in_body: Final = self._key_of is not None
        self.headless_pass: Final = not required and self._key_of is None

    def admit(
        self,
        header: str | None,
        asked: R,
        read: Callable[[R, int], Request],
        scope: Callable[[R], Scope | None],
        authorize: Callable[[R], bool] | None = None,
    ) -> Run | HTTPAnswer | None:
        """Claims the request, or answers it.

        None where it has no key and needs none, or where a claim of its own is around it already: two
        layers over one engine, say, or an app that calls itself.

        Args:
            header: value of the key's header, None where it was not sent.
            asked: the request as the adapter's server has it; handed to the three that follow.
            read: reads it, given the limit of its body in bytes; what is wrong with the body is raised.
            scope: says who is asking; what it raises passes through.
            authorize: whether this caller may have a kept answer now; asked before one is given. What it
                raises passes through.

        Raises:
            ProgramError: the engine or the adapter is not set up, or one of these functions returned what is no
                answer to its question.
        """
        try:
            key = parse_key(header, self.policy.header) if self._key_of is None else None
            request = read(asked, self.policy.max_request_bytes)
            if key is None and self._key_of is not None:
                key = self._key_of(request)
                if key is None and not self.required:
                    return None
                if key is None:
                    raise KeyMissing(
                        "This request needs a key in its body, and none was found where it has to stand."
                    )
        except IdempotencyError as error:
            return self._refusals.answer(error)
        return self.begin(
            request, key, scope(asked), (lambda: authorize(asked)) if authorize is not None else None
        )

    def begin(
        self,
        request: Request,
        key: str | None,
        scope: Scope | None,
        authorize: Callable[[], bool] | None = None,
    ) -> Run | HTTPAnswer | None:
        """Claims a request that was read, or answers it; see `admit`."""
        policy = self.policy
        operation = OPERATION
        if self._by_route:
            operation = f"{OPERATION} {request.method} {_storable(request.route or request.path)}"
        fingerprinter = request_fingerprinter(self._rule, request, policy.max_request_bytes)
        try:
            identity = identify(scope, operation, key, self._core.content_of(fingerprinter.current))
        except IdempotencyError as error:
            close_coroutine(scope)
            return self._refusals.answer(error)
        try:
            outer = CURRENT.get(None)
            if outer is not None and _covers(outer, identity, fingerprinter):
                return None
            begun = self.engine.claim(identity, fingerprinter, self._core)
            if isinstance(begun, Attempt):
                return Run(begun, policy, self._header_filter)
        except StoreUnavailable as error:
            if not (policy.fail_open and error.nothing_known):
                return self._refusals.answer(error)
            self.engine.emit(events.Unprotected, identity)
            return Run(None, policy, self._header_filter)
        except IdempotencyError as error:
            return self._refusals.answer(error)
        # Beyond `fail_open`: whatever its own code raises, the operation is known to be done.
        if authorize is not None and not verdict_of("authorize", authorize()):
            return self._refusals.answer(
                ReplayForbidden("You may not have the answer that is kept under this key.")
            )
        try:
            kept = from_outcome(begun.outcome, policy.replayed_header)
        except IdempotencyError as error:
            if isinstance(error, RecordUnreadable):
                self.engine.alarms.not_given_back(identity, begun.outcome, error)
            return self._refusals.answer(error)
        return readable(kept, request.accept_encoding)


def _storable(path: str) -> str:
    """A path that any store can hold: a client may send NUL, and bytes that are no UTF-8.

    Its own percent signs are escaped with them, so that two paths never become one.
    """
    return _ESCAPED.sub(lambda found: quote_from_bytes(found[0].encode("utf-8", "surrogatepass")), path)


def _covers(outer: Attempt, identity: Identity, fingerprinter: Fingerprinter) -> bool:
    """Whether the attempt that this code runs in is a claim of this very request.

    Two layers with different rules cannot compare their fingerprints; of one rule, another fingerprint is
    another request under the key that is in use.
    """
    if outer.settled or outer.identity != identity:
        return False
    mine = fingerprinter.current
    return tag_of(mine) != tag_of(outer.fingerprint) or mine == outer.fingerprint
