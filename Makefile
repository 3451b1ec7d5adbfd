# Every target sets up what it needs; a newcomer runs `make demo` first.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo serve tools types test test-fast test-properties test-pages test-guides test-slow test-ray test-long mutants test-gpu bench style lint types-strict locks contracts audit-deps sbom clean

PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
VENV := .venv
VENV_RAY := .venv-ray
TEST_JOBS ?= 3
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PIP_RAY := $(VENV_RAY)/bin/python -m pip --disable-pip-version-check --quiet
RUN := $(VENV)/bin

help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --- set-up: the versions and hashes of requirements/*.txt, nothing else ---

$(VENV)/.python:
	@echo "setting up: virtual environment in $(VENV)"
	@"$(PYTHON)" -c 'import sys; sys.exit("tallystick needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@

# What Python itself puts into an environment is years old, and known to be vulnerable: first of all it goes.
$(VENV)/.server: $(VENV)/.python requirements/venv.txt requirements/build.txt requirements/server.txt pyproject.toml tallystick_node/pyproject.toml
	@echo "setting up: installing the pinned dependencies"
	@$(PIP) install --require-hashes -r requirements/venv.txt
	@$(PIP) install --require-hashes -r requirements/build.txt
	@$(PIP) install --require-hashes -r requirements/server.txt
	@$(PIP) uninstall --yes --quiet --quiet tallystick  # an older one would take the reporter's files away with it; quiet where none is installed
	@$(PIP) install --no-deps --no-build-isolation --editable ./tallystick_client --editable ./tallystick_node --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.server requirements/dev.txt
	@echo "setting up: installing the pinned test tools"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

# Ray is large, no other target needs it, and it fails where `amdsmi` finds no driver: an environment of its own.
$(VENV_RAY)/.ready: $(VENV)/.dev requirements/ray.txt
	@echo "setting up: Ray, in $(VENV_RAY)"
	@"$(PYTHON)" -m venv $(VENV_RAY)
	@$(PIP_RAY) install --require-hashes -r requirements/venv.txt
	@$(PIP_RAY) install --require-hashes -r requirements/build.txt
	@$(PIP_RAY) install --require-hashes -r requirements/ray.txt
	@$(PIP_RAY) install --no-deps --no-build-isolation --editable ./tallystick_client --editable ./tallystick_node --editable .
	@touch $@

# --- running ---

demo: $(VENV)/.server  ## the main job on embedded parts, from a signed report to a paid claim
	@$(RUN)/tallystick demo

serve: $(VENV)/.server  ## the API and the background jobs on the embedded database
	@$(RUN)/tallystick serve

# --- checking ---

style: $(VENV)/.dev
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/lint-imports

types: $(VENV)/.dev  ## the types of everything
	@$(RUN)/mypy

lint: style types  ## style, types and import rules

tools:  ## what the tests use of the system: hledger, Chromium, npm, bubblewrap (Debian, as root; else skipped)
	@.ci/tools

# Tests start many processes: each would compile our modules again where bytecode is not kept.
test test-fast test-properties test-pages test-guides test-slow test-ray test-long: export PYTHONDONTWRITEBYTECODE :=

# Compiled once: else each process of the suite compiles all of it in a fresh clone.
OURS := domain ledger projections api cli node_reporter contracts tallystick_client benchmarks

SUITE = $(RUN)/python -m pytest -n $(TEST_JOBS) --dist worksteal
# Slow suites have targets of their own; each of their tests names its short form, which is in `test`.
QUICK := not long and not pages and not guides and not slow
FAST := tests/domain tests/golden tests/ledger/log/test_codec.py tests/ledger/books/test_postings.py tests/test_shape.py

test: tools style  ## everything but the types, slow suites and properties in their short form
	@$(RUN)/python -m compileall -q -j 0 $(OURS)
	@$(SUITE) -m "$(QUICK)" --hypothesis-profile dev

test-properties: tools $(VENV)/.dev  ## every property with all of its examples (in `test`: a fifth)
	@$(SUITE) -m "hypothesis and $(QUICK)"

test-pages: tools $(VENV)/.dev  ## every page of the console in a browser: roles, widths, colours
	@$(SUITE) -m "pages and not long"

test-guides: tools $(VENV)/.dev  ## the guides, walked command by command
	@$(SUITE) -m "guides and not long"

test-slow: tools $(VENV)/.dev  ## the other slow suites: kills, compilers, other databases, more requests
	@$(SUITE) -m "slow and not long"

test-ray: $(VENV_RAY)/.ready  ## an audit and a settlement on a Ray cluster, a worker and a node killed
	@$(VENV_RAY)/bin/python -m pytest -m "long" --timeout 3600 tests/ledger/fan_out/test_ray_tasks.py

# The search for profitable cheats costs as much as all the rest, and two at a time are enough where
# nothing waits.
test-fast: $(VENV)/.dev  ## the rules alone, without a server or the search for cheats; a fifth of the examples
	@$(RUN)/python -m pytest -m "$(QUICK)" -n 2 --dist worksteal \
	  --hypothesis-profile dev $(FAST) --ignore tests/domain/adversary

# A pass of every seeded suite, from this seed on: another one looks at other examples.
SEEDS_FROM ?= 0

# All that `test` leaves out: the slow suites first.
test-long: test-properties test-pages test-guides test-slow test-ray  ## slow suites, fault injection, a range of every seeded suite (SEEDS_FROM=20000: another)
	@$(RUN)/python -m pytest -m "long" --timeout 3600 --hypothesis-profile long
	@$(RUN)/python -m tests.passes --one-pass $(SEEDS_FROM)

MUTANTS ?= --seed 1 --count 400

mutants: $(VENV)/.dev  ## changes of the code that moves money which no test notices; goes on where it ended
	@nice $(RUN)/python -m tests.mutation $(MUTANTS)

test-gpu: $(VENV)/.dev  ## the reporter and the challenge on a real NVIDIA GPU (says what it needs)
	@$(RUN)/python -m benchmarks.node.gpu_node
	@$(RUN)/python -m benchmarks.node.gpu_challenge

types-strict: $(VENV)/.dev  ## pyright in strict mode (optional)
	@$(RUN)/pyright

bench: $(VENV)/.dev  ## one table beside peers and limits, with docs/performance.md and its plots written anew
	@$(RUN)/python -m benchmarks

audit-deps: $(VENV)/.dev  ## known vulnerabilities in the pinned dependencies
	@$(RUN)/pip-audit --require-hashes -r requirements/dev.txt

sbom: $(VENV)/.dev  ## the bill of materials of a server, sbom.json (CycloneDX), made of its lock
	@$(RUN)/python .ci/sbom.py requirements/server.txt >sbom.json

# --- maintaining ---

# Our three distributions come from this folder and have no line in a lock; two have a wheel, so that the
# resolver finds them. Everything else has one, pip and setuptools too.
COMPILE = $(RUN)/pip-compile --quiet --strip-extras --generate-hashes --no-header \
  --no-emit-index-url --no-emit-trusted-host --no-emit-options --no-emit-find-links

locks: $(VENV)/.dev  ## write requirements/*.txt anew from pyproject.toml
	@wheels=$$(mktemp -d); trap 'rm -rf "$$wheels"' EXIT; \
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir "$$wheels" ./tallystick_client ./tallystick_node; \
	printf 'pip\nsetuptools\n' | $(COMPILE) --allow-unsafe --no-annotate --output-file requirements/venv.txt -; \
	$(COMPILE) --allow-unsafe --only-build-deps --build-deps-for editable \
	  --output-file requirements/build.txt pyproject.toml; \
	$(COMPILE) --output-file requirements/node.txt tallystick_node/pyproject.toml; \
	for extras in "cli" "cli,audit" "server" "server,dev"; do \
	  name=$${extras##*,}; \
	  $(COMPILE) --unsafe-package tallystick --unsafe-package tallystick-client --unsafe-package tallystick-node --find-links "$$wheels" \
	    $$(echo "$$extras" | tr ',' '\n' | sed 's/^/--extra /' | tr '\n' ' ') \
	    --output-file requirements/$$name.txt pyproject.toml; \
	done; \
	printf 'hypothesis\nhttpx2\npytest\npytest-timeout\npytest-xdist\n' | \
	  $(COMPILE) --unsafe-package tallystick --unsafe-package tallystick-client --unsafe-package tallystick-node --find-links "$$wheels" \
	    --extra server --extra ray --constraint requirements/dev.txt --output-file requirements/ray.txt pyproject.toml -

contracts:  ## compile the contracts (needs node) and write contracts/artifacts
	@cd contracts && npm ci --no-audit --no-fund --loglevel error && node build.mjs

clean:  ## remove what set-up and tests left behind
	@rm -rf $(VENV) $(VENV_RAY) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
