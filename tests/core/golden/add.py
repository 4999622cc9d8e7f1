"""Append a case to the golden file; see README.md beside this file."""

from __future__ import annotations

import argparse
import json
import sys

from cases import added


def main() -> int:
    """Run the command line; 1 where the case was there already."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["json", "value", "parts"])
    parser.add_argument("input", help="the text or the expression itself; @FILE reads its bytes from a file")
    parser.add_argument("--rule", default="{}", help="keyword arguments of the Canonicalizer, as JSON")
    given = parser.parse_args()
    if given.input.startswith("@"):
        with open(given.input[1:], "rb") as file:  # noqa: PTH123  # any path of the caller's
            text = file.read()
    else:
        text = given.input.encode()
    if not added([(given.kind, text, json.loads(given.rule))]):
        sys.stderr.write("this case is in the file already\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
