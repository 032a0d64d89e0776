# guardband: every command sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python

# The environment belongs to this folder, this Python and these requirements; if any of them
# changes, or an installation was cut short, it is made anew.
KEY    := $(shell { pwd; $(PYTHON) -V; sed '/^\[tool/,$$d' pyproject.toml; cat constraints.txt; } 2>/dev/null | cksum | cut -d' ' -f1)
ALIVE  := $(shell $(PY) -c pass 2>/dev/null && echo yes)
STAMP  := $(VENV)/ready-$(KEY)$(if $(ALIVE),,-broken)
FULL   := $(VENV)/full-$(KEY)

# Slow tests that start processes of their own, and wait for them: one after the other.
ALONE  := tests/engines tests/live/browser tests/live/chaos tests/live/postgres \
	tests/live/server/test_load.py

.DEFAULT_GOAL := help
.PHONY: help install full browser run demo test test-all lint types unit bench better clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## set up the virtual environment in .venv

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "guardband needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "setting up $(VENV) (one to five minutes, once)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --disable-pip-version-check --constraint constraints.txt \
		--editable '.[dev]' > $(VENV)/install.log 2>&1 || { tail -n 30 $(VENV)/install.log; exit 1; }
	@touch $(VENV)/ready-$(KEY)

full: $(FULL)  ## `install`, and what the slow tests need: Ray, PostgreSQL's server, a browser's driver

$(FULL): $(STAMP)
	@echo "adding what the slow tests need (about a minute, once)"
	@$(PY) -m pip install --disable-pip-version-check --constraint constraints.txt \
		--editable '.[full]' > $(VENV)/full.log 2>&1 || { tail -n 30 $(VENV)/full.log; exit 1; }
	@touch $@

# The dashboard is tested in a real browser; Debian's is installed where there is none.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null || { \
		echo "installing chromium"; \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
			> .browser.log 2>&1 || { tail -n 20 .browser.log; \
			echo "the dashboard's tests need Chromium: install it, then try again"; exit 1; }; \
		rm -f .browser.log; }

run: install  ## the main job: a comparison, with a table, plots and a report
	@$(PY) -m guardband run

demo: install  ## a live system with simulated users, and its dashboard
	@$(PY) -m guardband demo

lint: install
	@$(PY) -m ruff check --quiet src tests bench examples
	@$(PY) -m ruff format --quiet --check src tests bench examples
	@$(VENV)/bin/lint-imports --no-cache > .lint-imports.log 2>&1 || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log

types: install
	@$(PY) -m mypy

unit: install
	$(PY) -m pytest -q -n auto -m "not slow"

test: lint types unit  ## lint, type check and tests

test-all: test full browser  ## `test`, and what needs longer
	$(PY) -m pytest -q -n auto -m slow $(ALONE:%=--ignore=%)
	$(PY) -m pytest -q -m slow $(ALONE)
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest -q tests/kernels tests/agent -m "not slow"

bench: full  ## measure speed; writes bench/results.md
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(PY) -m bench

better: install  ## Guard-UCB beside every rival, and on clicks; writes docs/better.md, docs/clicks.md
	@$(PY) -m bench.better
	@$(PY) -m bench.clicks

clean:  ## remove what was made here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis guardband-run report gb
