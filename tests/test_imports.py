"""What an import loads, and that every module can be the first one to be imported."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = ["idemcore", "idemcore_flask", "idemcore_wsgi", "idemcore_function"]

HEAVY = {"click", "flask", "pydantic", "redis", "rich", "sqlalchemy", "werkzeug"}

# In one interpreter, since loading other people's packages again and again is what takes the time.
IMPORT_EACH_MODULE_FIRST = """
import importlib, pkgutil, sys

for package in sys.argv[1:]:
    names = [package]
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        names.append(module.name)
    for name in names:
        for loaded in [key for key in sys.modules if key.split(".")[0].startswith("idemcore")]:
            del sys.modules[loaded]
        importlib.import_module(name)
        print(name)
"""


def fresh_interpreter(code: str, *arguments: str) -> list[str]:
    """Runs code in a new Python, warnings as errors; gives back the words that it printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_importing_the_core_loads_nothing_heavy() -> None:
    """A program that imports idemcore pays for no framework, no database toolkit and no pydantic."""
    loaded = fresh_interpreter("import idemcore, sys; print(*sys.modules)")
    assert "idemcore" in loaded
    assert HEAVY.isdisjoint(loaded), sorted(HEAVY.intersection(loaded))


@pytest.mark.parametrize("adapter", ["idemcore_wsgi"])
def test_an_adapter_without_an_extra_loads_no_framework(adapter: str) -> None:
    """The WSGI adapter works in a program that has neither Flask nor Werkzeug."""
    loaded = fresh_interpreter(f"import {adapter}, sys; print(*sys.modules)")
    assert adapter in loaded
    assert {"flask", "werkzeug", "sqlalchemy"}.isdisjoint(loaded)


def test_every_module_can_be_imported_first() -> None:
    """No module works only because another one happened to be imported before it."""
    imported = fresh_interpreter(IMPORT_EACH_MODULE_FIRST, *PACKAGES)
    assert set(PACKAGES) <= set(imported)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists_once(package: str) -> None:
    """What `__all__` promises is there, and is said once."""
    module = importlib.import_module(package)
    names = module.__all__
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []
