# Two commands do everything on a machine with Python >= 3.11, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
ARGS ?=

.PHONY: help docs demo test test-docs test-board check bench bench-answers figures claims soak sandbox-battery contracts requirements sbom clean

help:
	@echo "make demo      run the packaged example with a scripted team, no keys, no server"
	@echo "make test      the test suite, a worker more than processors (ARGS=-n0: in one process)"
	@echo "make test-docs commands and examples of the documentation, the demo, the benchmarks and the built wheel"
	@echo "make test-board   the board in a Chromium of this machine: each page, orders, reconnects, accessibility"
	@echo "make docs      the documentation as a site, in site/"
	@echo "make check     ruff, mypy --strict, words of the glossary, known vulnerabilities of packages"
	@echo "make bench     benchmarks; ARGS=\"refusals CORPUS=DIR\": how much real work would be refused, recall: how many seeded faults are found; --docs: also write docs/figures.md"
	@echo "make bench-answers   how well answers are read, beside other readers; writes docs/answers.svg and docs/answers.md"
	@echo "make claims    which test, benchmark or measurement stands behind each promise of the documentation"
	@echo "make figures   how large orchestrator/ and tests/ are: lines, modules, import cycles, names defined twice"
	@echo "make soak      long kill, load and property runs"
	@echo "make sandbox-battery   about a hundred hostile actions in every tier of this machine"
	@echo "make requirements   write requirements.txt (versions and hashes) from pyproject.toml and constraints.txt"
	@echo "make sbom      write sbom.json (CycloneDX)"
	@echo "make contracts write contracts/*.schema.json from the types"

# Stamps: an environment is made once per change of what it is made from.
$(VENV)/.run: pyproject.toml requirements.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.run
	@$(BIN)/orchestrator demo $(ARGS)

# Whole files go to the workers, in their order: a file's fixtures are made once, and those that take longest are not left
# for the end (tests/conftest.py). Bytecode is kept: else each worker would compile every test again.
test: $(VENV)/.dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# What a reader of the documentation would do: slow, and seldom broken by a change of the code.
test-docs: $(VENV)/.dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile -m "docs and not soak" $(ARGS)

$(VENV)/.board: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[board]'
	@touch $@

# Says so where no Chromium is: an error where CI is set, else none. New screenshots: ARGS=--renew-screenshots
test-board: $(VENV)/.board
	$(BIN)/python -m tests.board $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.docs.glossary
	$(BIN)/python -m tests.audit_tool

# What the daemon needs and what builds it, with the hashes of all their files, on every system. Versions: constraints.txt.
requirements: $(VENV)/.run
	$(BIN)/uv pip compile pyproject.toml -c constraints.txt --extra build --universal --python-version 3.11 --only-binary :all: \
		--generate-hashes --no-annotate --quiet --custom-compile-command "make requirements" -o requirements.txt

sbom: $(VENV)/.run
	@$(BIN)/uv tool run -q --from cyclonedx-bom@7.5.0 cyclonedx-py requirements --pyproject pyproject.toml \
		--output-reproducible -o sbom.json requirements.txt
	@echo "sbom.json: what the daemon needs from PyPI, as CycloneDX"

# The documentation as a site; a link that leads nowhere is an error.
docs: $(VENV)/.run
	@NO_MKDOCS_2_WARNING=1 $(BIN)/uv tool run -q --from mkdocs-material==9.8.2 mkdocs build -q $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ARGS)

# Gets the other readers into .bench/ by itself; about five minutes, a look within one: ARGS=--quick
bench-answers: $(VENV)/.dev
	$(BIN)/python -m benchmarks.answers $(ARGS)

# What stands behind each promise of the documentation; a source that is not there is an error.
claims: $(VENV)/.dev
	@$(BIN)/python -m tests.docs.claims

figures: $(VENV)/.run
	@$(BIN)/python -m benchmarks.figures

# Property tests draw 25 examples in `make test`; here as many as each names.
soak: $(VENV)/.dev
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m "soak or hypothesis" --timeout 1800 $(ARGS)

sandbox-battery: $(VENV)/.dev
	$(BIN)/python -m pytest -n0 tests/sandbox/test_battery.py $(ARGS)

contracts: $(VENV)/.dev
	$(BIN)/python -m tests.contracts_tool

clean:
	rm -rf $(VENV) site .bench .pytest_cache .mypy_cache .ruff_cache build dist sbom.json *.egg-info
