"""A decorated function as an operation: its key, scope and fingerprint are fixed before it runs.

All of it is read once, from the bound arguments, before user code gets to touch them; what the function
does to its arguments changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from idemcore import (
    CanonicalizationError,
    Canonicalizer,
    Engine,
    Policy,
    RecordUnreadable,
    Result,
    ResultNotSerializable,
)
from idemcore.attempt import Attempt
from idemcore.codec import Codec, TypeCodec
from idemcore.identity import Identity, encode_scope, identify
from idemcore.machine import Fingerprinter, Mismatch, Settlement, decide, ending_of, settle
from idemcore.record import Answer, Record, State, UnreadableRecord
from idemcore.refusal import refusal_error
from idemcore.running import replayed, run_once
from idemcore.settling import Replay

from .alike import refuse_alike
from .binding import Binding
from .compared import Compared, rule_over
from .source import KeyCallback, KeySource, ScopeSource, key_source, scope_source
from .template import Template

_SETTLEMENTS: Final = {State.COMPLETED: Settlement.KEEP, State.UNKNOWN: Settlement.UNKNOWN}


class Asked(NamedTuple):
    """What a call asks for, read from its arguments once.

    Attributes:
        identity: names the operation.
        fingerprint: of the arguments.
    """

    identity: Identity
    fingerprint: Fingerprinter

    def __repr__(self) -> str:
        return f"Asked({self.identity!r})"


class Returned(NamedTuple):
    """What a function would have returned, as an operator found it."""

    value: object

    def __repr__(self) -> str:
        return "Returned()"


class Operation:
    """What a decorator knows about its function.

    Attributes:
        function: the undecorated one.
        namespace: the operation's name in every identity.
        policy: of every call.
    """

    def __init__(
        self,
        engine: Engine,
        function: Callable[..., Any],
        *,
        key: KeySource,
        scope: ScopeSource,
        namespace: str,
        exclude: Iterable[str],
        accept: Iterable[Canonicalizer],
        canonicalizer: Canonicalizer | None,
        declared: Mapping[str, Any],
        codec: Codec[Any],
        policy: Policy,
    ) -> None:
        self.function: Final = function
        self.namespace: Final = namespace
        self._engine = engine
        binding = Binding(function)
        self._codec = codec
        self.policy: Final = policy
        self._key = key_source(key, binding, declared)
        self._scope = scope_source(scope, binding, declared)
        self._asks_for_scope = callable(self._scope)
        rule = rule_over(binding, exclude, accept, canonicalizer)
        named = self._key.names if self._key is not None else ()
        self._compared = Compared(rule, binding, named, namespace)
        if not isinstance(self._key, KeyCallback):  # which may tell them apart
            refuse_alike(declared, self._compared.whole, namespace)
        self._arguments = binding.reader(self._compared.whole)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result[Any]:
        """One call: runs the function, or gives back what it came to.

        Args:
            args: by position.
            kwargs: by keyword.
        """
        begun = self._engine.claim(*self.read(args, kwargs), self.policy)
        return self.finish(begun, args, kwargs)

    def begin(self, asked: Asked, policy: Policy, *, asks_again: bool = False) -> Attempt | Replay:
        """Claims what a call asks for, or finds it done; what this raises is a refusal, and nothing was run.

        Args:
            asked: what the call's arguments ask for.
            policy: of this claim; the operation's own, or one that waits longer or shorter.
            asks_again: whether the caller keeps asking while another run holds the claim.
        """
        return self._engine.claim(*asked, policy, asks_again=asks_again)

    def finish(self, begun: Attempt | Replay, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result[Any]:
        """Runs the function under its claim, or gives back what it came to; what either raised is raised."""
        if not isinstance(begun, Replay):
            return run_once(begun, self._codec, self.policy, self.function, *args, **kwargs)
        try:
            return replayed(begun.outcome, self._codec, self.policy)
        except RecordUnreadable as error:
            self._engine.alarms.not_given_back(self.read(args, kwargs).identity, begun.outcome, error)
            raise

    def settlement_after(self, begun: Attempt | Replay, error: BaseException) -> Settlement:
        """What became of the claim, after the function raised: as the record has it; of a kept one, KEEP.

        Where the record cannot be had or is not written yet, the policy tells what it will say.
        """
        if isinstance(begun, Replay):
            return Settlement.KEEP if begun.outcome.kind == "raised" else Settlement.RETRY
        try:
            record = self._engine.get(begun.identity)
        except Exception:  # the store is away, which says nothing about the work
            record = None
        if isinstance(record, Record) and record.state is not State.CLAIMED:
            return _SETTLEMENTS.get(record.state, Settlement.RETRY)
        return settle(ending_of(error, self.policy), self.policy, 1)

    def forget(self, asked: Asked) -> bool:
        """Removes the record of a call, unless a run of it is under way; whether none stands now."""
        identity = asked.identity
        record = self._engine.get(identity)
        if record is None:
            return True
        if isinstance(record, UnreadableRecord):
            raise _unreadable(record, identity)
        return self._engine.forget(identity, record.token)

    def resolve(self, asked: Asked, verdict: Literal["not_done", "done"] | Returned) -> bool:
        """Settles the outcome of a call that no run settled, as an operator found it; whether it was applied.

        Args:
            asked: what the call's arguments ask for.
            verdict: as `Engine.resolve` takes it, an answer by what the function would have returned.

        Raises:
            FingerprintMismatch: the record is of a call with other arguments under this key.
            ResultNotSerializable: the answer cannot be kept, or is not what the function declares.
        """
        identity = asked.identity
        record = self._engine.get(identity)
        if record is None:
            return False
        if isinstance(record, UnreadableRecord):
            raise _unreadable(record, identity)
        decision = decide(record, asked.fingerprint, self.policy, b"")  # of a call that has no claim
        if isinstance(decision, Mismatch):
            raise refusal_error(decision, identity)
        to = self._answer(verdict.value) if isinstance(verdict, Returned) else verdict
        return self._engine.resolve(identity, record.token, to, retention=self.policy.retention)

    def _answer(self, value: object) -> Answer:
        """What the function would have returned. It may return what it does not declare; nobody does for it."""
        codec = self._codec
        body = codec.encode(value)
        if isinstance(codec, TypeCodec) and not codec.is_declared(body):
            raise ResultNotSerializable(
                f"{self.namespace} declares another result than {type(value).__name__}: give retries what it "
                "would have returned."
            )
        return Answer("returned", b"", body)

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Asked:
        """What a call asks for."""
        arguments = self._arguments(*args, **kwargs)
        key = self._key(arguments) if self._key is not None else None
        scope = self._scope(arguments) if self._asks_for_scope else self._scope
        try:
            fingerprint = self._compared.fingerprint(arguments)
        except CanonicalizationError as error:
            raise CanonicalizationError(
                f"An argument of {self.namespace} cannot be compared with that of a retry: {error}. Leave it "
                "out with exclude={…} where it is no part of what is asked for."
            ) from None
        current = fingerprint.current
        if key is None:
            key = current.rpartition(":")[2]
        identity = identify(scope, self.namespace, key, self.policy.content_of(current))
        # As Asked(…) makes it, but for a call of Python's own in each call.
        return tuple.__new__(Asked, (identity, fingerprint))

    def asks_for(self, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Asked) -> bool:
        """Whether the arguments, read a second time, still ask for the same.

        A callable is not asked again for its key, or scope: it is asked once for each call, and may give
        another answer each time. What it is given is compared whole instead, as far as it is compared.
        """
        arguments = self._arguments(*args, **kwargs)
        if isinstance(self._key, Template) and self._key(arguments) != asked.identity.key:
            return False
        if isinstance(self._scope, Template) and encode_scope(self._scope(arguments)) != asked.identity.scope:
            return False
        return self._compared.fingerprint(arguments).current == asked.fingerprint.current


def _unreadable(record: UnreadableRecord, identity: Identity) -> RecordUnreadable:
    return RecordUnreadable(
        f"The record of this call cannot be read ({record.reason}), so it is left as it is.",
        key_digest=identity.digest,
    )
