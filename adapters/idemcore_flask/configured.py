"""An app's settings as options: what a file or an environment cannot write is made of what it can.

Durations are seconds there, and switches are often texts. Every text that is not empty counts as yes to
Python, ``"0"`` and ``"false"`` too, so texts are read by their meaning, and others are refused.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from difflib import get_close_matches
from typing import Final, cast

from flask import Flask

from idemcore import ConfigurationError, Engine
from idemcore.http import HTTPOptions, HTTPPolicy

_PREFIX: Final = "IDEMCORE_"
STORE: Final = "IDEMCORE_STORE"
PROTECT: Final = "IDEMCORE_PROTECT"
_ENABLED: Final = "IDEMCORE_ENABLED"
SWEEP_EVERY: Final = "IDEMCORE_SWEEP_EVERY"
_TABLE: Final = "IDEMCORE_TABLE"
_SCHEMA: Final = "IDEMCORE_SCHEMA"
_FAST: Final = "IDEMCORE_FAST"
_OTHERS: Final = (STORE, _TABLE, _SCHEMA, PROTECT, _ENABLED, SWEEP_EVERY)
_CLOSE: Final = 0.75
"""How alike a name has to be to be taken for a slip: 'durable' is none of 'table'."""
_DURATIONS: Final = ("wait", "retention", "lease", "max_hold")
_SWITCHES: Final = ("fail_open", "keep_body")
_MEANINGS: Final[dict[object, bool]] = {"1": True, "true": True, "0": False, "false": False}


def setting_of(option: str) -> str:
    """The name under which an app's configuration holds an option."""
    return _PREFIX + option.upper()


def check_names(app: Flask, options: Collection[str]) -> None:
    """Refuses a setting that nobody would read: a slip in its name would leave payments on the default.

    Raises:
        ConfigurationError: a name that begins with ``IDEMCORE_`` is none of ours, or not of an app's settings.
    """
    known = {name.removeprefix(_PREFIX): name for name in (*map(setting_of, options), *_OTHERS)}
    for name in app.config:
        if not name.startswith(_PREFIX) or name in known.values() or _is_the_environments(app, name):
            continue
        if name == _FAST:
            raise ConfigurationError(f"{_FAST} is read from the environment of the process, not from settings.")
        near = get_close_matches(name.removeprefix(_PREFIX), known, n=1, cutoff=_CLOSE)
        raise ConfigurationError(
            f"There is no setting {name!r}" + (f"; did you mean {known[near[0]]!r}?" if near else ".")
        )


def engine_of(app: Flask) -> Engine:
    """The engine that the settings name, by a store's URL, and its table where that has a name of its own.

    Raises:
        ConfigurationError: no store is named, or the names are none.
    """
    url = app.config.get(STORE)
    if not url:
        raise ConfigurationError(f"Give init_app an engine, or set {STORE} to a store's URL.")
    engine, names = Engine(), _table_settings(app)
    for name in names:
        if not isinstance(app.config[name], str):
            raise ConfigurationError(f"{name} is a text, not {type(app.config[name]).__name__}.")
    with naming(STORE, *names):
        engine.bind(url, table=app.config.get(_TABLE) or None, schema=app.config.get(_SCHEMA) or None)
    return engine


def check_table(app: Flask) -> None:
    """Refuses a table's name beside an engine of the app's own, which has its table already.

    Where it is the environment's that an app has taken over whole, it is for the command line.

    Raises:
        ConfigurationError: the name would not be read.
    """
    unread = [name for name in _table_settings(app) if not _is_the_environments(app, name)]
    if unread:
        raise ConfigurationError(
            f"{' and '.join(unread)} would not be read, for the engine is given in code: there it is "
            "engine.bind(url, table=…, schema=…), or a SQLAlchemyStore's own table."
        )


def _table_settings(app: Flask) -> list[str]:
    return [name for name in (_TABLE, _SCHEMA) if app.config.get(name)]


def _is_the_environments(app: Flask, name: str) -> bool:
    """Whether a setting stands there because the app has taken its whole environment over."""
    return name in (_TABLE, _SCHEMA, _FAST) and os.environ.get(name) == app.config[name]


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
