# Every target sets up its own virtual environment first; Python 3.11 or newer is all it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_OPTIONS ?=
# Without bytecode files, every process of the tests would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test compat docs lint style bars docstrings types bench fuzz campaigns bounds matrix hooks clean

demo: $(VENV)/.demo        ## set up and run the main job on embedded data
	$(BIN)/fuda demo

test: $(VENV)/.test        ## set up and run all tests
	$(BIN)/pytest -n 2 --dist worksteal --durations=5 $(PYTEST_OPTIONS)

compat: $(VENV)/.test      ## sklearn-crfsuite's own tests, on the replacement for it
	$(BIN)/python scripts/sklearn_crfsuite_tests.py

docs: $(VENV)/.docs        ## the site, in build/docs; every example of the gallery is run
	MPLBACKEND=Agg $(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/docs

lint: style bars docstrings ## style, limits on sizes, docstrings

style: $(VENV)/.lint       ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bars: $(VENV)/.lint        ## limits on sizes; every test asserts
	$(BIN)/python scripts/bars.py

docstrings: $(VENV)/.lint  ## numpydoc over the public API
	$(BIN)/python scripts/docstrings.py

types: $(VENV)/.lint       ## types of the package
	$(BIN)/mypy

bench: $(VENV)/.bench      ## competitors and Fuda, timed alternately
	$(BIN)/python benchmarks/run.py

fuzz: $(VENV)/.fuzz        ## fuzz readers, model files and the command, for a minute
	$(BIN)/python -m reliability.fuzz --runs 1000000 --seconds 60

campaigns: $(VENV)/.test   ## short campaigns of kills, signals, failing calls, a full disk, threads and processes
	$(BIN)/python -m reliability.kills --runs 5
	$(BIN)/python -m reliability.interrupts --runs 12
	$(BIN)/python -m reliability.labelling --runs 3
	$(BIN)/python -m reliability.faults --only "^(fuda convert|HMM-dict)$$" --runs 1
	$(BIN)/python -m reliability.full_disk --only "^(store|compiled code|fuda (convert|train|tag))$$"
	$(BIN)/python -m reliability.concurrency --only tree --size 0
	$(BIN)/python -m reliability.determinism --runs 2 --only "^[A-Za-z]*$$"

bounds: $(VENV)/.test      ## all tests with numba's bounds checking
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/bounds $(BIN)/pytest -n 2 --dist worksteal $(PYTEST_OPTIONS)

matrix:                    ## all tests on every supported Python, and with the oldest dependencies
	$(PYTHON) scripts/matrix.py

hooks: $(VENV)/.lint       ## run style and types before every commit
	$(BIN)/pre-commit install

clean:
	rm -rf $(VENV) .venv-3.* build dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fuda needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.test $(VENV)/.docs $(VENV)/.lint $(VENV)/.bench $(VENV)/.fuzz: $(VENV)/.%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@
