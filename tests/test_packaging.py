"""The frame of the repository agrees with itself: what is listed in several places is listed in all of them."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = set(PYPROJECT["project"]["optional-dependencies"])
ADAPTERS = {path.name for path in (ROOT / "adapters").iterdir() if (path / "__init__.py").exists()}


def shipped_sources() -> list[Path]:
    """Every Python file that is part of the wheel."""
    return [path for folder in ("idemcore", "adapters") for path in sorted((ROOT / folder).rglob("*.py"))]


def tracked_files() -> list[Path]:
    """Every file that is committed, less those that are deleted in the work tree."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("what is committed is known to git alone, and this is no clone or git is missing")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_installed_version_is_the_one_in_pyproject() -> None:
    """The version stands in one place, and the environment was made from it."""
    assert importlib.metadata.version("idemcore") == PYPROJECT["project"]["version"]


def test_every_adapter_is_listed_wherever_packages_are() -> None:
    """A new adapter is shipped, type-checked and held to the directions of imports."""
    folders = {f"adapters/{name}" for name in ADAPTERS}
    tools = PYPROJECT["tool"]
    assert set(tools["hatch"]["build"]["targets"]["wheel"]["packages"]) == {"idemcore"} | folders
    assert folders <= set(tools["mypy"]["files"])
    assert set(tools["importlinter"]["root_packages"]) == {"idemcore"} | ADAPTERS
    core = next(
        rule for rule in tools["importlinter"]["contracts"] if rule["name"].startswith("The core knows")
    )
    assert set(core["forbidden_modules"]) >= ADAPTERS
    independent = next(rule for rule in tools["importlinter"]["contracts"] if rule["type"] == "independence")
    assert set(independent["modules"]) == ADAPTERS


@pytest.mark.parametrize("file", ["scripts/wheel-test", "tests/test_imports.py", "tests/test_docstrings.py"])
def test_every_adapter_is_looked_at_by_what_looks_at_packages(file: str) -> None:
    """These lists stand by themselves, since the wheel is tested where no folder could be listed."""
    (listed,) = re.findall(r"^PACKAGES = [\[{](.+)[\]}]$", (ROOT / file).read_text(), re.MULTILINE)
    assert set(re.findall(r"\w+", listed)) == {"idemcore"} | ADAPTERS


@pytest.mark.parametrize("package", ["idemcore", *sorted(f"adapters/{name}" for name in ADAPTERS)])
def test_every_package_says_that_it_is_typed(package: str) -> None:
    """A user's type checker reads our annotations (PEP 561)."""
    assert (ROOT / package / "py.typed").is_file()


def test_the_folder_of_adapters_is_no_package() -> None:
    """Nothing invites `from adapters.x import`, which would load an adapter a second time."""
    assert not (ROOT / "adapters" / "__init__.py").exists()


def test_every_extra_that_an_error_names_exists() -> None:
    """A pip line in our own messages can be pasted as it stands."""
    named = {
        extra
        for path in shipped_sources()
        for extra in re.findall(r"pip install '?\"?idemcore\[([\w,-]+)\]", path.read_text())
    }
    assert named <= EXTRAS


def test_set_up_installs_every_extra() -> None:
    """The environment that tests run in lacks no extra."""
    line = re.search(r"^EXTRAS=(\S+)$", (ROOT / "scripts" / "setup").read_text(), re.MULTILINE)
    assert line is not None
    assert set(line[1].split(",")) == EXTRAS


def test_no_committed_file_names_a_folder_of_one_machine() -> None:
    """A stranger's clone works wherever it lies."""
    local = re.compile(rb"(?<![\w.-])/(?:work|root)/\w")
    assert [str(path) for path in tracked_files() if local.search(path.read_bytes())] == []


def test_every_path_that_a_page_names_is_there() -> None:
    """What was moved or renamed is not looked for in vain."""
    path = re.compile(r"`((?:adapters|benchmarks|docs|examples|fuzz|idemcore|scripts|tests)/[\w./-]+)`")
    named = {
        (page.relative_to(ROOT).as_posix(), found)
        for page in tracked_files()
        if page.suffix == ".md"
        for found in path.findall(page.read_text())
    }
    assert len(named) > 20
    assert {(page, found) for page, found in named if not (ROOT / found).exists()} == set()
