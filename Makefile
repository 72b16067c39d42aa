# Every path here is relative, so that the checkout may lie in a directory with spaces in its name.
# ARGS goes to the tool: make test ARGS="-k claim -x"
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
STAMP := .venv/.up-to-date
RUN_STAMP := .venv/.ready-to-run
WORKERS ?= 4
PYTHON_DIRS := $(foreach d,src tests benches tools,$(if $(wildcard $d/*.py $d/*/*.py),$d))

.PHONY: help setup run test conformance screenshots check format bench bench-peers docs wheel lock lock-peers clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv from requirements.lock, if it is not up to date

$(STAMP): requirements.lock pyproject.toml tools/setup
	@PYTHON="$(PYTHON)" tools/setup
	@touch $(STAMP) $(RUN_STAMP)

# What running needs, and no test tools; an environment that has these is ready, too.
$(RUN_STAMP): requirements-run.lock pyproject.toml tools/setup
	@PYTHON="$(PYTHON)" tools/setup run
	@touch $(RUN_STAMP)

run: $(RUN_STAMP) ## serve on http://127.0.0.1:8765, with sample jobs on an empty database, until Ctrl-C
	@$(BIN)/penstock serve --samples $(ARGS)

test: setup ## run the tests (LARGE=1: the largest of them at the sizes they promise)
	@tools/packages
	@$(BIN)/python -m tools.kafka
	PYTHONDONTWRITEBYTECODE= TESTS_LARGE="$(LARGE)" $(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal $(ARGS)

conformance: setup ## run what every database must pass (DATABASES="sqlite postgresql": on these alone)
	@tools/packages
	PYTHONDONTWRITEBYTECODE= TESTS_DATABASES="$(DATABASES)" $(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal tests/conformance $(ARGS)

screenshots: setup ## take the pictures of the pages in docs/images again
	@tools/packages
	TESTS_WRITE_SCREENSHOTS=1 $(BIN)/python -m pytest -n 0 -m screenshots tests/browser $(ARGS)

check: setup ## format, lint, types, import contracts, dependencies, dead code: all of them, then say which failed
	@failed=; \
	try() { echo "== $$*"; "$(BIN)/$$@" || failed="$$failed $$1"; }; \
	try ruff format --check --quiet .; \
	try ruff check --quiet .; \
	try mypy $(PYTHON_DIRS); \
	try lint-imports; \
	try deptry .; \
	try vulture $(filter-out tests,$(PYTHON_DIRS)); \
	if [ -n "$$failed" ]; then echo "check failed:$$failed" >&2; exit 1; fi; \
	echo "check passed"

format: setup ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

bench: setup ## run the benchmarks
	$(BIN)/python -m benches $(ARGS)

bench-peers: setup ## run the same work through other job libraries, each in an environment of its own in .peers
	$(BIN)/python -m benches.peers $(ARGS)

docs: setup ## regenerate the generated reference
	$(BIN)/python -m tools.generate_reference $(ARGS)

wheel: ## build dist/penstock-*.whl, to install in a project of your own
	@PYTHON="$(PYTHON)" tools/setup wheel dist
	@ls dist/penstock-*.whl

lock: ## resolve pyproject.toml into both requirements locks again (ARGS=--upgrade for newer versions)
	@PYTHON="$(PYTHON)" tools/setup lock $(ARGS)

lock-peers: setup ## resolve what each peer asks for again
	$(BIN)/python -m benches.peers.environments lock

clean: ## remove caches and build output
	rm -rf dist build htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis test-artifacts
	find src tests benches tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## also remove .venv, .tools and .peers
	rm -rf .venv .tools .peers
