"""What a database can never keep is refused before it is sent.

A server may cut off what is too large for it, as if it were away, or cut it short.
"""

from __future__ import annotations

from typing import Final

from idemcore.errors import AnswerTooLarge
from idemcore.identity import Identity
from idemcore.record import Answer
from idemcore.stores.base import Verdict
from idemcore.stores.sql.connections import Link

_LARGE: Final = 256 * 1024
"""Bytes of an answer from which on it is asked whether it can be kept: below the limit of any server in use."""


def refuse_too_large(link: Link, outcome: Verdict, identity: Identity) -> None:
    """Lets pass what is no answer, and an answer that this database takes.

    Raises:
        AnswerTooLarge: it is larger than that.
    """
    if not isinstance(outcome, Answer):
        return
    size = len(outcome.meta) + len(outcome.body)
    if size >= _LARGE and size > (largest := link.largest()):
        raise AnswerTooLarge(
            f"The answer has {size:,} bytes, and this database takes {largest:,}. Keep it elsewhere, and "
            "return where it is.",
            key_digest=identity.digest,
        )
