"""Closes a month in the books, once, however often it is typed: `python close_month.py 2024-01 database.db`."""

from __future__ import annotations

import sys
from datetime import timedelta

from idemcore import Engine, FingerprintMismatch, InProgress
from idemcore_function import idempotent, outcome

idem = Engine()


@idempotent(idem, key="{month}", namespace="books.close", retention=timedelta(days=400))
def close(month: str, currency: str = "EUR") -> str:
    return f"{month} closed in {currency}"


def main(month: str, database: str, currency: str = "EUR") -> int:
    idem.bind(f"sqlite:///{database}")
    idem.create_schema()
    try:
        closed = outcome(close)(month, currency)
    except InProgress as error:
        print(f"Somebody is closing {month} now; try again in {error.retry_after:.0f} s.", file=sys.stderr)
        return 75  # EX_TEMPFAIL, for whoever schedules this
    except FingerprintMismatch:
        print(f"{month} was closed in another currency.", file=sys.stderr)
        return 65
    print(closed.value, f"(already, on {closed.completed_at:%Y-%m-%d})" if closed.completed_at else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
