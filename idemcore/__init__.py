"""Make any operation with a side effect safe to retry.

A caller names an operation by a key; the first request runs it and its answer is kept; a true retry gets
that answer back; the same key with a different request is refused. These are the public names; the
adapters are `idemcore_flask`, `idemcore_wsgi` and `idemcore_function`.
"""

from idemcore.all_arguments import ALL_ARGUMENTS
from idemcore.attempt import Attempt
from idemcore.canonical import (
    NOT_FINGERPRINTED,
    Canonicalizer,
    canonicalize,
    canonicalize_json,
    fingerprint,
    fingerprint_json,
)
from idemcore.current import current_attempt
from idemcore.engine import Engine
from idemcore.errors import (
    AlreadyCommitted,
    AnswerTooLarge,
    CallerError,
    CanonicalizationError,
    ConfigurationError,
    FingerprintMismatch,
    IdempotencyError,
    Incomparable,
    InProgress,
    KeyInvalid,
    KeyMissing,
    LeaseLost,
    NotReplayable,
    OperatorNeeded,
    OutcomeUnknown,
    ProgramError,
    RecordedFailure,
    RecordUnreadable,
    ResultNotSerializable,
    ScopeMissing,
    StoreFull,
    StoreUnavailable,
    TryLater,
)
from idemcore.identity import SINGLE_TENANT, Identity, identify
from idemcore.policy import Policy
from idemcore.running import Result
from idemcore.settling import Replay
from idemcore.stores.memory import MemoryStore

__all__ = [
    "Engine",
    "Policy",
    "Attempt",
    "Replay",
    "Result",
    "MemoryStore",
    "Canonicalizer",
    "NOT_FINGERPRINTED",
    "SINGLE_TENANT",
    "Identity",
    "identify",
    "ALL_ARGUMENTS",
    "current_attempt",
    "canonicalize",
    "canonicalize_json",
    "fingerprint",
    "fingerprint_json",
    "IdempotencyError",
    "CallerError",
    "KeyMissing",
    "KeyInvalid",
    "ScopeMissing",
    "FingerprintMismatch",
    "NotReplayable",
    "RecordedFailure",
    "TryLater",
    "InProgress",
    "StoreUnavailable",
    "StoreFull",
    "OperatorNeeded",
    "OutcomeUnknown",
    "RecordUnreadable",
    "Incomparable",
    "ProgramError",
    "ConfigurationError",
    "CanonicalizationError",
    "ResultNotSerializable",
    "LeaseLost",
    "AnswerTooLarge",
    "AlreadyCommitted",
]
