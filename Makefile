# guardband: every command sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip install --disable-pip-version-check

# The environment belongs to this folder, this Python and these requirements; if any of them
# changes, or an installation was cut short, it is made anew.
KEY    := $(shell { pwd; $(PYTHON) -V; sed '/^\[tool/,$$d' pyproject.toml; cat requirements/*.txt; } 2>/dev/null | cksum | cut -d' ' -f1)
ALIVE  := $(shell $(PY) -c pass 2>/dev/null && echo yes)
STAMP  := $(VENV)/ready-$(KEY)$(if $(ALIVE),,-broken)
FULL   := $(VENV)/full-$(KEY)

# Slow tests that start processes of their own and wait for them, or measure one: one after the other.
ALONE  := tests/live/server/test_memory.py tests/cli/test_reproduce_stop.py tests/engines tests/live/browser tests/live/chaos tests/live/postgres \
	tests/live/server/test_load.py tests/live/operators/test_with_a_server.py

.DEFAULT_GOAL := help
.PHONY: help install full browser typescript run demo docs test test-all test-lowest test-newest lint types unit coverage bench better simulate lock dist clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## set up the virtual environment in .venv

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "guardband needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "setting up $(VENV) (one to five minutes, once)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@{ $(PIP) --require-hashes --requirement requirements/dev.txt && \
		$(PIP) --no-deps --no-build-isolation --editable .; } \
		> $(VENV)/install.log 2>&1 || { tail -n 30 $(VENV)/install.log; exit 1; }
	@echo "compiling the simulator's kernels (three to five minutes, once)"
	@for name in guard-ucb dis-lin-ucb; do \
		$(PY) -m guardband run --algorithms $$name --rounds 2 --trials 1 --json > $(VENV)/$$name.log 2>&1 & \
		done; wait
	@touch $(VENV)/ready-$(KEY)

full: $(FULL)  ## `install`, and what the slow tests need: Ray, PostgreSQL's server, a browser's driver, Node

$(FULL): $(STAMP)
	@echo "adding what the slow tests need (about a minute, once)"
	@$(PIP) --require-hashes --requirement requirements/full.txt \
		> $(VENV)/full.log 2>&1 || { tail -n 30 $(VENV)/full.log; exit 1; }
	@touch $@

# The dashboard is tested in a real browser; Debian's is installed where there is none.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null || { \
		echo "installing chromium"; \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
			> .browser.log 2>&1 || { tail -n 20 .browser.log; \
			echo "the dashboard's tests need Chromium: install it, then try again"; exit 1; }; \
		rm -f .browser.log; }

# The TypeScript client is checked by its compiler, and runs in the Node that `full` brings.
COMPILER := clients/typescript/node_modules/.package-lock.json
typescript: $(COMPILER)

$(COMPILER): clients/typescript/package-lock.json $(FULL)
	@echo "installing TypeScript's compiler"
	@$(VENV)/bin/npm ci --prefix clients/typescript --ignore-scripts --no-audit --no-fund \
		> $(VENV)/npm.log 2>&1 || { tail -n 20 $(VENV)/npm.log; exit 1; }

run: install  ## the main job: a comparison, with a table, plots and a report
	@$(PY) -m guardband run

demo: install  ## a live system with simulated users, and its dashboard
	@$(PY) -m guardband demo

# Pages link to each other as they lie in the repository, so the site keeps that layout.
docs: install  ## the site, all pages and the API reference, in build/site
	@rm -rf build/pages build/site && mkdir -p build/pages/bench
	@mkdir -p build/pages/clients/typescript && cp clients/typescript/*.md clients/typescript/*.ts build/pages/clients/typescript
	@cp -r *.md LICENSE NOTICE CITATION.cff docs examples build/pages && cp bench/results.md build/pages/bench
	@$(PY) -m nbconvert --log-level ERROR --execute --to markdown build/pages/examples/notebook/first_agent.ipynb \
		2> build/notebook.log || { cat build/notebook.log; exit 1; }
	@$(PY) docs/mathematics.py build/pages && rm build/pages/docs/mathematics.py
	@$(VENV)/bin/zensical build --clean --strict
	@echo "open build/site/index.html"

lint: install
	@$(PY) -m ruff check --quiet src tests bench examples clients docs
	@$(PY) -m ruff format --quiet --check src tests bench examples clients docs
	@$(VENV)/bin/lint-imports --no-cache > .lint-imports.log 2>&1 || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log

types: install
	@$(PY) -m mypy

unit: install
	$(PY) -m pytest -q -n auto -m "not slow"

test: lint types unit  ## lint, type check and tests

test-all: test full browser typescript  ## `test`, and what needs longer
	$(PY) -m pytest -q -n auto -m slow $(ALONE:%=--ignore=%)
	$(PY) -m pytest -q -m slow $(ALONE)
	NUMBA_BOUNDSCHECK=1 $(PY) -m pytest -q tests/kernels tests/agent -m "not slow"

# One process, as every line is counted: slow. TESTS=tests/agent for some.
coverage: install  ## which lines the fast tests run; writes build/coverage/index.html
	@rm -rf build/coverage && mkdir -p build/coverage
	-@$(PY) -m coverage run -m pytest -q -n 0 -m "not slow" $(TESTS)
	@$(PY) -m coverage combine --quiet && $(PY) -m coverage html --quiet --directory build/coverage
	@echo "$$($(PY) -m coverage report --format=total $(if $(PART),--include='*/guardband/$(PART)/*')) % of lines and branches$(if $(PART), of $(PART)), kernels aside"

bench: full  ## measure speed; writes bench/results.md and results.json; python -m bench.compare A B
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(PY) -m bench

better: install  ## Guard-UCB beside every rival, and on clicks; writes docs/better.md, docs/clicks.md
	@$(PY) -m bench.better
	@$(PY) -m bench.clicks

EVENTS ?= 100000
SEED   ?= 0
WORLDS ?= 0
simulate: install  ## the live system and its faults, in one seeded process; EVENTS=10000000 SEED=0
	@PYTHONPATH=tests:. $(PY) -m live.simulation --events $(EVENTS) --seed $(SEED) --worlds $(WORLDS)

# Every version with its hashes, for all systems and Pythons; those of dev and image are full's.
LOCK   := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes \
	--no-annotate --no-header pyproject.toml requirements/build.in

lock: install  ## choose the newest versions of what is installed, and write down their hashes
	@$(LOCK) --upgrade --extra full --output-file requirements/full.txt
	@$(LOCK) --extra dev --constraint requirements/full.txt --output-file requirements/dev.txt
	@$(LOCK) --extra postgres --constraint requirements/full.txt --output-file requirements/image.txt

# In an environment of their own; warnings of old and new neighbours are not ours to mend. Of .venv
# they need uv alone, so another PYTHON does not make it anew.
OTHER  := .venv-other
UV     := $(VENV)/bin/uv
$(UV):
	@$(MAKE) --no-print-directory install

test-lowest test-newest: $(UV)
	@rm -rf $(OTHER) && $(UV) venv --quiet --python $(PYTHON) $(OTHER)
	@$(UV) pip install --quiet --python $(OTHER)/bin/python --editable '.[dev]' \
		$(if $(findstring lowest,$@),--resolution lowest-direct)
	$(OTHER)/bin/python -m pytest -q -n auto -m "not slow" -o filterwarnings=default $(TESTS)

test-lowest:  ## the tests with the lowest versions that are allowed; TESTS=tests/live for some
test-newest:  ## the tests with the newest versions, without constraints

# Without isolation: hatchling comes from requirements/, with its hash.
dist: full  ## wheel, sdist and a list of what an install brings (SBOM), in dist/
	@rm -rf dist && $(PY) -m build --no-isolation --outdir dist . > $(VENV)/dist.log 2>&1 || { tail -n 20 $(VENV)/dist.log; exit 1; }
	@$(PY) -m twine check --strict dist/*
	@$(VENV)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--output-file dist/sbom.json requirements/full.txt
	@ls dist

clean:  ## remove what was made here
	rm -rf $(VENV) $(OTHER) .pytest_cache .mypy_cache .ruff_cache .hypothesis guardband-run report gb build dist
