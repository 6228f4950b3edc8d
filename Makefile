# Everything is one line: the two that matter are `make run` and `make test`.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: run test lint playground lock clean

run: .venv/runs
	@$(BIN)/oombot serve

test: .venv/tests lint
	@$(BIN)/pytest -q -n 4 --dist loadfile

lint: .venv/tests
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/oombot rules check

playground: .venv/tests
	@$(BIN)/python -m tests.fakeslack.playground

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oombot needs Python 3.11 or newer: make PYTHON=python3.11 …" or 0)'
	@$(PYTHON) -m venv .venv

.venv/runs: .venv/bin/python requirements.lock pyproject.toml
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/tests: .venv/runs requirements-dev.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

lock:
	@uv pip compile --universal --generate-hashes --no-annotate --no-header --no-emit-index-url -p 3.11 pyproject.toml --extra build -o requirements.lock
	@uv pip compile --universal --generate-hashes --no-annotate --no-header --no-emit-index-url -p 3.11 pyproject.toml --all-extras -c requirements.lock -o requirements-dev.lock

clean:
	@rm -rf .venv dist build
