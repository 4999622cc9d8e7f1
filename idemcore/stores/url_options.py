"""An option of a URL that nobody knows: told by its name, and never with its value, which may be a secret."""

from __future__ import annotations

import re
from typing import Final

from idemcore.errors import ConfigurationError

_NAME: Final = re.compile(r"unexpected keyword argument '(\w+)'")


def unknown_option(scheme: str, name: str) -> ConfigurationError:
    """What is told of it.

    Args:
        scheme: of the URL.
        name: of the option.
    """
    return ConfigurationError(f"The '{scheme}://' URL has an option {name!r}, which nobody knows.")


def name_in(error: Exception) -> str | None:
    """The option's name, where the driver's own function was called with it."""
    found = _NAME.search(str(error)) if isinstance(error, TypeError) else None
    return found[1] if found is not None else None
