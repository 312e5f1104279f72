# Everything runs in .venv, made from the hashed files in requirements/.
#   PYTHON=python3.12 make test    another Python      (a change of PYTHON makes .venv anew)
#   make test ARGS="-k tree"       further arguments   (demo, test, slow, bench, pins)
#   make test UV=                  as on a machine without uv

BIN := .venv/bin
UV ?= $(shell command -v uv 2>/dev/null)
PY := $(or $(PYTHON),python3)
PIP := $(if $(UV),$(UV) pip install -q --python $(BIN)/python,$(BIN)/python -m pip install -qq)
# A stamp bears the name of its Python and lies in .venv, so that a .venv made anew has only its own.
STAMP := $(subst /,-,$(PYTHON)).stamp
CORE := .venv/core-$(STAMP)
DEV := .venv/dev-$(STAMP)

# pip compiles what it installs, uv only when asked; without it the first start of each program pays.
export UV_COMPILE_BYTECODE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test slow lint check bench pins clean
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(CORE) ## a first experiment, offline, from nothing
	@$(BIN)/labcoat demo $(ARGS)

test: $(DEV) ## the quick tests
	@$(BIN)/python -m pytest -n auto $(ARGS)

slow: $(DEV) ## the slow tests
	@$(BIN)/python -m pytest -n auto -m slow $(ARGS)

lint: $(DEV) ## style, types, and who imports whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@set -e; for task in $(TASKS); do $(BIN)/mypy --ignore-missing-imports --no-error-summary $$task*.py; done
	$(BIN)/lint-imports --no-logo

# One call each, as their modules have the same names; what they import is in their environment, not in ours.
TASKS = $(sort $(dir $(wildcard src/labcoat/tasks/*/*/*.py)))

check: lint test ## all that must pass before a change lands

bench: $(DEV) ## every figure of speed and memory
	@set -e; for file in $(sort $(wildcard benchmarks/bench_*.py)) benchmarks/trial_overhead.py benchmarks/model_call.py benchmarks/sim_throughput.py benchmarks/score.py; do $(BIN)/python $$file $(ARGS); done

# Keeps the pins that still fit; `make pins ARGS=--upgrade` takes the newest. One version for all Pythons, so that
# everyone measures with the same code.
COMPILE = $(or $(UV),uv) pip compile -q --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--custom-compile-command 'make pins' pyproject.toml $(ARGS)
pins: ## requirements/*.txt from pyproject.toml (needs uv)
	$(COMPILE) --group build -o requirements/core.txt
	$(COMPILE) --group dev -c requirements/core.txt -o requirements/dev.txt

clean: ## remove what can be made again; runs/ stays
	rm -rf .venv .uv dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# From nothing each time, so that what is installed is what is pinned. Ends with both stamps, as dev.txt holds core.txt.
.venv/%-$(STAMP): requirements/%.txt
ifeq ($(UV),)
	@$(PY) -c 'import ensurepip' 2>/dev/null || { \
		echo "no $(PY) that can make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	@$(PY) -m venv --clear .venv
else
	@$(UV) venv -q --clear $(addprefix --python ,$(PYTHON)) .venv
endif
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "labcoat needs Python 3.11 or newer; name one: PYTHON=python3.12 make ..." >&2; exit 1; }
	@echo "Installing requirements/$*.txt into .venv ..."
	@$(PIP) --require-hashes -r $<
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $(CORE) $@
