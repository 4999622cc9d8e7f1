"""What a module is called in a record: the same whether it was imported or started as a script."""

from __future__ import annotations

import sys
from pathlib import Path


def lasting_name(module: str) -> str:
    """The name of a module; that of the script's file for ``__main__``, which is whatever was started."""
    if module != "__main__":
        return module
    main = sys.modules[module]
    spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    return Path(path).stem if path else module
