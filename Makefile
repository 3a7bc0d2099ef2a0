# Every target makes its own virtual environment first; Python 3.11 or newer is all it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types bench clean

demo: $(VENV)/.demo        ## set up and run the main job on embedded data
	$(BIN)/fuda demo

test: $(VENV)/.test        ## set up and run all tests
	$(BIN)/pytest -n 2 --durations=5

lint: $(VENV)/.lint        ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint       ## types of the public API
	$(BIN)/mypy

bench: $(VENV)/.bench      ## rivals and ourselves, timed alternately
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fuda needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@
