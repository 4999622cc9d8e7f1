"""idemcore for plain functions: `@idempotent`, and what can be asked of a decorated function."""

from idemcore.all_arguments import ALL_ARGUMENTS

from .batch import run_batch
from .decorator import forget, idempotent, key_of, outcome, resolve
from .report import Item, Report

__all__ = [
    "ALL_ARGUMENTS",
    "idempotent",
    "outcome",
    "key_of",
    "forget",
    "resolve",
    "run_batch",
    "Report",
    "Item",
]
