# Two commands for a new machine with Python 3.11 or later, pip and make: make demo, make test.

VENV ?= .venv
# The virtual environment's own Python once there is one, so that a choice made once is kept.
PYTHON ?= $(or $(shell "$(VENV)/bin/python" -c "import pip" 2>/dev/null && echo "$(VENV)/bin/python"),python3)
PORT ?= 8000
DEMO_DIR ?= .demo
# A version of Django to test on, such as ~=5.2.0; the newest that fits if empty.
DJANGO ?=
# Databases to test on, such as postgresql or sqlite,mariadb; all that answer if empty.
DB ?=
# What else pytest or the benchmarks are told, such as -k append or --quick.
ARGS ?=

RUN = "$(VENV)/bin/python"
READY = "$(PYTHON)" scripts/environment.py "$(VENV)" --django "$(DJANGO)"
DEMO_NEEDS = --extra rest --extra ag-ui --group demo

.PHONY: help demo demo-live demo-reset test test-npm lint bench clean python
.DEFAULT_GOAL := help

help:
	@echo "make demo        build the demo and serve it (PORT=8000, PYTHON=python3)"
	@echo "make demo-live   beside it, in another terminal: runs worked through in real time"
	@echo "make demo-reset  throw the demo's database away"
	@echo "make test        run the tests (DB=postgresql, DJANGO='~=5.2.0', ARGS='-k append')"
	@echo "make test-npm    the npm clients: AG-UI and TanStack AI; needs Node 20 (ARGS=--test-reporter=spec)"
	@echo "make lint        ruff, mypy and import-linter"
	@echo "make bench       what a write costs, beside other projects (DB=sqlite, ARGS=--quick)"
	@echo "make clean       remove what the above made"

python:
	@"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || { \
	  version=$$("$(PYTHON)" --version 2>&1) || version="not there"; \
	  echo "Python 3.11 or later is needed; '$(PYTHON)' is $$version." \
	    "Choose another: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }

demo: export SOLID_RUNS_DEMO_DIR = $(abspath $(DEMO_DIR))
demo: python
	@"$(PYTHON)" scripts/free_port.py "$(PORT)"
	@$(READY) $(DEMO_NEEDS)
	@$(RUN) example_project/manage.py build_demo
	@$(RUN) example_project/manage.py serve_demo "$(PORT)"

demo-live: export SOLID_RUNS_DEMO_DIR = $(abspath $(DEMO_DIR))
demo-live: python
	@$(READY) $(DEMO_NEEDS)
	@$(RUN) example_project/manage.py simulate_runs --live

demo-reset:
	rm -rf "$(DEMO_DIR)"

test: python
	@$(READY) --extra rest --extra ag-ui --group test
	@$(RUN) scripts/run_tests.py --databases "$(DB)" -- $(ARGS)

test-npm: python
	@$(READY) $(DEMO_NEEDS)
	@$(RUN) scripts/check_npm_client.py $(ARGS)
	@$(RUN) scripts/check_docs_client.py
	@$(RUN) scripts/check_tanstack.py

lint: python
	@$(READY) --extra rest --extra ag-ui --group lint
	"$(VENV)/bin/ruff" check .
	"$(VENV)/bin/ruff" format --check .
	"$(VENV)/bin/mypy"
	"$(VENV)/bin/lint-imports"

bench: python
	@$(READY) --extra rest --extra ag-ui --group bench
	@$(RUN) -m benchmarks --databases "$(DB)" $(ARGS)

clean: demo-reset
	rm -rf "$(VENV)" tests/npm/node_modules tests/tanstack/node_modules tests/tanstack/build
