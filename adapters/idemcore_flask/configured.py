"""An app's settings as options: what a file or an environment cannot write is made of what it can.

Durations are seconds there, and switches are often texts. Every text that is not empty counts as yes to
Python, ``"0"`` and ``"false"`` too, so texts are read by their meaning, and others are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from difflib import get_close_matches
from typing import Final, cast

from flask import Flask

from idemcore import ConfigurationError
from idemcore.http import HTTPOptions, HTTPPolicy

STORE: Final = "IDEMCORE_STORE"
PROTECT: Final = "IDEMCORE_PROTECT"
_ENABLED: Final = "IDEMCORE_ENABLED"
SWEEP_EVERY: Final = "IDEMCORE_SWEEP_EVERY"
_OTHERS: Final = (STORE, PROTECT, _ENABLED, SWEEP_EVERY)
_OF_THE_ENVIRONMENT: Final = ("IDEMCORE_FAST", "IDEMCORE_SCHEMA", "IDEMCORE_TABLE")
"""Not read from settings, but among them where an app takes its whole environment over."""
_DURATIONS: Final = ("wait", "retention", "lease", "max_hold")
_SWITCHES: Final = ("fail_open", "keep_body")
_MEANINGS: Final[dict[object, bool]] = {"1": True, "true": True, "0": False, "false": False}


def setting_of(option: str) -> str:
    """The name under which an app's configuration holds an option."""
    return "IDEMCORE_" + option.upper()


def check_names(app: Flask, options: Collection[str]) -> None:
    """Refuses a setting that nobody would read: a slip in its name would leave payments on the default.

    Raises:
        ConfigurationError: a name that begins with ``IDEMCORE_`` is none of ours.
    """
    known = [*map(setting_of, options), *_OTHERS, *_OF_THE_ENVIRONMENT]
    for name in app.config:
        if name.startswith("IDEMCORE_") and name not in known:
            near = get_close_matches(name, known, n=1)
            raise ConfigurationError(
                f"There is no setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ".")
            )


@contextmanager
def naming(*settings: str) -> Iterator[None]:
    """What is found wrong in here is told with the names of the settings that it came from."""
    try:
        yield
    except ConfigurationError as error:
        if not settings:
            raise
        raise ConfigurationError(f"The app's configuration, {', '.join(settings)}: {error}") from error


def option_of(name: str, value: object) -> object:
    """An option's value, of a setting's; what neither a file nor an environment needs stays as it is.

    Raises:
        ConfigurationError: it is no value of this option; the message names the setting.
    """
    setting = setting_of(name)
    if name in _DURATIONS:
        value = _duration(setting, value)
    elif name in _SWITCHES:
        value = _switch(setting, value)
    with naming(setting):
        HTTPPolicy.check(cast("HTTPOptions", {name: value}))
    return value


def is_enabled(app: Flask) -> bool:
    """Whether the app's requests are protected at all; looked at in each request, so tests may turn it.

    Raises:
        ConfigurationError: the setting is neither on nor off.
    """
    value = app.config.get(_ENABLED, True)
    return value if isinstance(value, bool) else _switch(_ENABLED, value)


def sweep_interval(app: Flask) -> timedelta | None:
    """How often the app's own processes sweep; None where they do not.

    Raises:
        ConfigurationError: the setting is no duration.
    """
    value = app.config.get(SWEEP_EVERY)
    return None if value is None else _duration(SWEEP_EVERY, value)


def _duration(setting: str, value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):  # no number, or more than any calendar holds
            return timedelta(seconds=value)
    raise ConfigurationError(
        f"{setting} is a number of seconds or a timedelta, not {type(value).__name__} {value!r}."
    )


def _switch(setting: str, value: object) -> bool:
    # 0 and 1 are what Config.from_prefixed_env makes of "0" and "1".
    meaning = _MEANINGS.get(str(value).lower()) if isinstance(value, (str, int)) else None
    if meaning is None:
        raise ConfigurationError(f"{setting} is True or False, or a text: 1, true, 0 or false; not {value!r}.")
    return meaning
