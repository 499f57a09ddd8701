PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow lint docs clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/mtlirt demo --force

test: lint
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo docs/_build/html/index.html

clean:
	rm -rf .venv docs/_build docs/vignettes .mypy_cache .ruff_cache .pytest_cache .hypothesis mtlirt-demo
