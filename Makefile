# Every target sets itself up: a Python >= 3.11, make, and pip or ensurepip are all it takes.
.PHONY: help setup demo test nightly check docs wheel-test bench torture clean
.NOTPARALLEL:

BIN := .venv/bin

help:  ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

setup:  ## make .venv with everything that development needs
	@scripts/setup test check bench docs

demo:  ## take card payments over a bad network and check what was charged
	@scripts/setup test
	@$(BIN)/python examples/payments/demo.py

test:  ## run the tests (ARGS="-k name" narrows them)
	@scripts/setup test
	@$(BIN)/python -m pytest $(ARGS)

nightly:  ## the long proofs: a hundred thousand texts against the reference, a million numbers (half an hour)
	@scripts/setup test
	@$(BIN)/python -m pytest -o faulthandler_timeout=0 -m nightly $(ARGS)
	@$(BIN)/python -m pytest -o faulthandler_timeout=0 --hypothesis-profile=nightly --hypothesis-show-statistics \
	    tests/core/test_canonical_against_reference.py tests/stores/test_*_walk.py tests/stores/test_store_walks.py $(ARGS)

check:  ## lint, format, types, directions of imports
	@scripts/setup test check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 PYRIGHT_PYTHON_GLOBAL_NODE=0 $(BIN)/pyright --project pyproject.toml
	$(BIN)/lint-imports --no-cache

docs:  ## build the pages of docs/ into build/docs; a warning is an error
	@scripts/setup test docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "docs: build/docs/index.html"

wheel-test:  ## build the wheel, test it in clean environments
	@scripts/setup test check
	@$(BIN)/python scripts/wheel-test

bench:  ## what a call costs: beside a bare app, on each store, as it grows (ARGS=--quick for a look)
	@scripts/setup test bench
	@$(BIN)/python -m benchmarks.adapters $(ARGS)
	@$(BIN)/python -m benchmarks.stores $(ARGS)
	@$(BIN)/python -m benchmarks.growth $(ARGS)

torture:  ## every backend for half an hour in all, killed and cut off (ARGS="--minutes 1 --seed 7 --backend sqlite")
	@scripts/setup test bench
	@$(BIN)/python -m tests.torture $(ARGS)

clean:  ## remove the environment and what tools left behind
	rm -rf .venv .tools .ruff_cache .mypy_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
