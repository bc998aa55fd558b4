# Two commands do everything on a machine with Python 3.11+ and make:
#   make demo   simulate a table, discover its graph, print the scores, write the report
#   make test   format, lint, types and all tests, the documentation built strictly among them
# and `make docs` builds the documentation into site/, warnings are errors.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test docs format reproduce clean

demo: $(STAMP)
	$(BIN)/diffan demo -o demo

test: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

# Not --quiet: it would keep warnings from being counted, and so from being errors.
docs: $(STAMP)
	$(BIN)/mkdocs build --strict
	@echo "open site/index.html"

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Every table and figure of the paper, hours on a laptop; stop it at will, it goes on where it stopped.
WORKERS ?= 2
DEVICE ?= cpu
reproduce: $(STAMP)
	$(BIN)/python benchmarks/run.py unpack benchmarks/results/reproduction.jsonl cells
	$(BIN)/python benchmarks/run.py sweep cells --workers $(WORKERS) --device $(DEVICE)
	$(BIN)/python benchmarks/run.py score cells
	$(BIN)/python benchmarks/run.py pack cells benchmarks/results/reproduction.jsonl
	$(BIN)/python benchmarks/compare.py

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "diffan needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
