# guardband: every command sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python

# The environment belongs to this folder, this Python and these requirements; if any of them
# changes, or an installation was cut short, it is made anew.
KEY    := $(shell { pwd; $(PYTHON) -V; cat pyproject.toml constraints.txt; } 2>/dev/null | cksum | cut -d' ' -f1)
ALIVE  := $(shell $(PY) -c pass 2>/dev/null && echo yes)
STAMP  := $(VENV)/ready-$(KEY)$(if $(ALIVE),,-broken)

.DEFAULT_GOAL := help
.PHONY: help install run test test-all lint types unit bench better clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## set up the virtual environment in .venv

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "guardband needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "setting up $(VENV) (about a minute, once)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --disable-pip-version-check --constraint constraints.txt \
		--editable '.[dev]' > $(VENV)/install.log 2>&1 || { tail -n 30 $(VENV)/install.log; exit 1; }
	@touch $(VENV)/ready-$(KEY)

run: install  ## the main job: a comparison, with a table, plots and a report
	@$(PY) -m guardband run

lint: install
	@$(PY) -m ruff check --quiet src tests bench
	@$(PY) -m ruff format --quiet --check src tests bench
	@$(VENV)/bin/lint-imports --no-cache > .lint-imports.log 2>&1 || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log

types: install
	@$(PY) -m mypy

unit: install
	$(PY) -m pytest -q -n auto -m "not slow"

test: lint types unit  ## lint, type check and tests

test-all: test  ## `test`, and what needs longer
	$(PY) -m pytest -q -n auto -m slow
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest -q tests/core tests/fleet -m "not slow"

bench: install  ## measure speed; writes bench/results.md
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(PY) -m bench

better: install  ## Guard-UCB beside every rival on every problem; writes docs/better.md
	@$(PY) -m bench.better

clean:  ## remove what was made here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis guardband-run
