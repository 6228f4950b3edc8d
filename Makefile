PYTHON ?= python3
BIN = .venv/bin
