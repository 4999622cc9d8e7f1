"""What the module of a kept exception is called: the same whether it was imported or started as a script."""

from __future__ import annotations

import sys
from pathlib import Path


def lasting_name(module: str) -> str:
    """The name of a module; of whatever was started that of the script's file, in its child processes too."""
    if module not in ("__main__", "__mp_main__"):
        return module
    main = sys.modules[module]
    spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    return Path(path).stem if path else module
