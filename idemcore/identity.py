"""Who asks for what under which key: one identity names one logical operation, byte for byte.

Everything that enters is checked here, before any store is touched, so that no store ever truncates,
folds or refuses a key. Sizes are in bytes of UTF-8: scope 128, operation 255, key 255.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from idemcore.errors import ConfigurationError, KeyInvalid, KeyMissing, ScopeMissing

MAX_SCOPE_BYTES: Final = 128
MAX_OPERATION_BYTES: Final = 255
MAX_KEY_BYTES: Final = 255
DIGEST_DIGITS: Final = 32


class SingleTenant(Enum):
    """An enum of one, so that type checkers know the sentinel and pickle keeps its identity."""

    SINGLE_TENANT = "single-tenant"

    def __repr__(self) -> str:
        return "SINGLE_TENANT"


SINGLE_TENANT: Final = SingleTenant.SINGLE_TENANT
"""Said in place of a scope by a program that serves one tenant only: keys are shared by all callers."""

_SINGLE: Final = "~single"

ScopePart: TypeAlias = str | int | UUID
Scope: TypeAlias = ScopePart | tuple[ScopePart, ...] | SingleTenant


class Identity(NamedTuple):
    """The name of one logical operation: unique per scope and operation.

    Attributes:
        scope: encoded scope, see `encode_scope`.
        operation: which kind of call; never supplied by a client.
        key: what the caller sent.
    """

    scope: str
    operation: str
    key: str

    @property
    def digest(self) -> str:
        """32 hex digits that stand for the identity in logs and errors: 128 bits, so that no two that somebody
        has chosen have the same.
        """
        framed = "".join(f"{len(part)}:{part}" for part in self)
        return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]

    def __repr__(self) -> str:
        # Keys and scopes are the caller's data: they stay out of logs and tracebacks.
        return f"Identity(#{self.digest})"


def identify(scope: Scope | None, operation: str, key: str | None, content: str | None = None) -> Identity:
    """Checks the three parts and returns the identity.

    Args:
        scope: who is asking.
        operation: which kind of call.
        key: what the caller sent.
        content: the request's fingerprint, where it is a part of the identity (`Policy.content_of`).

    Raises:
        ScopeMissing: the scope, or a part of it, is None or empty.
        KeyMissing: the key is None or empty.
        KeyInvalid: the key is longer than 255 bytes of UTF-8 or holds NUL or a lone surrogate.
        ConfigurationError: the scope is of another type, or the operation is empty or not text.
    """
    if scope is SINGLE_TENANT:
        text = _SINGLE
    else:
        text = _encode_text(scope) if type(scope) is str else encode_scope(scope)
    kind = _encode_operation(operation)
    if content is not None:
        kind = _bounded(f"{kind} {content}", MAX_OPERATION_BYTES)
    # The usual key is known to be good without a call; whatever is not that is looked at in full.
    if type(key) is not str or not key.isascii() or not 0 < len(key) <= MAX_KEY_BYTES or "\0" in key:
        key = _check_key(key)
    # As Identity(…) makes it, but for a call of Python's own: this is on the way of every request.
    return tuple.__new__(Identity, (text, kind, key))


def encode_scope(scope: Scope | None) -> str:
    """Writes a scope as text so that two scopes meet only if they are equal.

    An int and a UUID stand for their usual text, so a tenant id that arrives once as ``7`` and once as
    ``"7"`` is the same tenant. Tuples are framed by length. What is longer than 128 bytes enters as a
    digest. Encoded forms start with ``~``; a text that does so itself is escaped.
    """
    if isinstance(scope, str):
        return _encode_text(scope)
    if scope is SINGLE_TENANT:
        return _SINGLE
    if isinstance(scope, tuple):
        if not scope:
            raise ScopeMissing("The scope is an empty tuple: return who is asking, such as a tenant id.")
        parts = [_scope_part(part) for part in scope]
        return _bounded("~(" + "".join(f"{len(part)}:{part}" for part in parts) + ")", MAX_SCOPE_BYTES)
    return _bounded(_scope_part(scope), MAX_SCOPE_BYTES)


@lru_cache(maxsize=4096)  # the same few tenants ask again and again; each entry is a short text
def _encode_text(scope: str) -> str:
    text = _scope_text(scope)
    return _bounded("~" + text if text.startswith("~") else text, MAX_SCOPE_BYTES)


def _scope_part(part: object) -> str:
    if isinstance(part, str):
        return _scope_text(part)
    if isinstance(part, UUID):
        return str(part)
    if isinstance(part, int) and not isinstance(part, bool):
        return str(part)
    if part is None:
        raise ScopeMissing(
            "The scope is None: return who is asking, such as a tenant id, or say SINGLE_TENANT "
            "where all callers may share keys."
        )
    raise ConfigurationError(
        f"A scope is a str, an int, a UUID or a tuple of these, not {type(part).__name__}."
    )


def _scope_text(text: str) -> str:
    if not text:
        raise ScopeMissing(
            "The scope is empty: return who is asking, such as a tenant id, or say SINGLE_TENANT "
            "where all callers may share keys."
        )
    if not _is_storable(text):
        raise ConfigurationError("A scope may not contain NUL or a lone surrogate.")
    return text


@lru_cache(maxsize=1024)  # they are few: one for each function or route
def _encode_operation(operation: str) -> str:
    if not isinstance(operation, str) or not operation or not _is_storable(operation):
        raise ConfigurationError("An operation is a non-empty text, such as 'billing.charge'.")
    return _bounded(operation, MAX_OPERATION_BYTES)


def _check_key(key: str | None) -> str:
    if key is None or key == "":
        raise KeyMissing("No idempotency key was given; send one that names this operation.")
    if not isinstance(key, str):
        raise KeyInvalid(f"An idempotency key is text, not {type(key).__name__}.")
    if not _is_storable(key):
        raise KeyInvalid("An idempotency key may not contain NUL or a lone surrogate.")
    if len(key) > MAX_KEY_BYTES or (not key.isascii() and len(key.encode()) > MAX_KEY_BYTES):
        raise KeyInvalid(f"An idempotency key has at most {MAX_KEY_BYTES} bytes of UTF-8.")
    return key


def _is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bounded(text: str, limit: int) -> str:
    """The text itself, or a digest of it where it is too long to be stored whole; never a prefix."""
    if len(text) <= limit and (text.isascii() or len(text.encode()) <= limit):
        return text
    return "~#" + hashlib.sha256(text.encode()).hexdigest()
