"""The examples in docstrings are run, so that what is read is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

PACKAGES = ["idemcore", "idemcore_flask", "idemcore_wsgi", "idemcore_function"]


def examples() -> list[doctest.DocTest]:
    """Every docstring of ours that holds an example."""
    found = []
    for package in map(importlib.import_module, PACKAGES):
        below = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        for module in [package, *(importlib.import_module(info.name) for info in below)]:
            found += [test for test in doctest.DocTestFinder().find(module) if test.examples]
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_example_in_the_docstring_is_true(example: doctest.DocTest) -> None:
    """What a docstring shows comes out as shown."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=report.append)
    assert report == []
