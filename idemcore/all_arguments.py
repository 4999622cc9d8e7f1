"""ALL_ARGUMENTS, said in place of a key: two calls are one operation when all their arguments are equal."""

from __future__ import annotations

from enum import Enum
from typing import Final


class AllArguments(Enum):
    """An enum of one, so that type checkers know the sentinel and pickle keeps its identity."""

    ALL_ARGUMENTS = "all-arguments"

    def __repr__(self) -> str:
        return "ALL_ARGUMENTS"


ALL_ARGUMENTS: Final = AllArguments.ALL_ARGUMENTS
"""The key is a digest of the arguments. Two payments of one amount to one person are then one payment: use
it only where equal arguments can mean nothing else than a retry."""
