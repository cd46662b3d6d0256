# `make run` installs and runs the main job; `make test` installs what the tests need and runs them.
PYTHON ?= python3.11
BIN := .venv/bin
# torch is named beside the package, so that pip keeps a CPU build where one is at hand.
TORCH := torch==2.13.0
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test bench clean

run: .venv/.run
	$(BIN)/python examples/running_example.py
	$(BIN)/suffice reproduce --live 20 --out out

test: .venv/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2

bench: .venv/.run
	set -e; for each in bench/*.py; do echo "$$each"; $(BIN)/python "$$each"; done

clean:
	rm -rf .venv

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.run: .venv/.made pyproject.toml
	$(PIP) $(TORCH) -e '.[sensing,logs,plot]'
	touch $@

.venv/.test: .venv/.made pyproject.toml
	$(PIP) $(TORCH) -e '.[sensing,logs,plot,cluster,dev]'
	touch $@
