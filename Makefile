# Two commands do everything: `make book` and `make test`.  `make help` lists the rest; ARGS=... goes to the long ones.
PYTHON ?= python3
PRESET ?= paper
PORT ?= 8000
BIN := .venv/bin
READY := .venv/.ready
export PYTHONDONTWRITEBYTECODE := # tests are compiled once, and not by each of their processes each time
GENERATORS := $(addprefix tests/privacy/test_,promises.py refusals.py one_more.py)
PARALLEL := -n logical --no-loadscope-reorder # a process more than cores, a file's tests in one of them (tests/conftest.py)

.PHONY: help book pdf zip check lint test pytest serve lock clean artifact audits benchmarks claims faults front grid loop matrix mutants peers planner release searches shell

help: ## show this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 12

book: $(READY) ## execute what has changed and render _build/html/index.html (PRESET=quick, or your mine.yaml)
	@$(BIN)/evolvingdp book --preset $(PRESET)

pdf: book ## the whole book as _build/evolving-privacy.pdf (needs chromium)
	@$(BIN)/evolvingdp pdf

zip: book ## the whole book as _build/evolving-privacy.zip, which reads from disk
	@$(BIN)/evolvingdp zip

check: $(READY) lint ## a minute: lint, types, and the tests that a change breaks first
	@$(BIN)/pytest $(PARALLEL) tests/unit tests/reference tests/book/test_repository.py

test: $(READY) ## lint, types, all tests (browser tests need chromium)
	@+$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: $(READY) ## the tests alone
	@$(BIN)/pytest $(PARALLEL) --durations=10 --durations-min=1

lint: $(READY) ## lint and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PYTHONHASHSEED=0 $(BIN)/mypy # its joins of types depend on the order of sets: the same answer on every machine

shell: $(READY) ## a shell in which `evolvingdp` is the one of this checkout
	@PATH="$(CURDIR)/$(BIN):$$PATH" $${SHELL:-sh}

serve: ## show the rendered book at http://localhost:8000 (PORT=...)
	@test -f _build/html/index.html || { echo "nothing is rendered yet: run make book first"; exit 1; }
	@$(PYTHON) -c 'import sys; port = sys.argv[1]; sys.exit(not (port.isdecimal() and 0 < int(port) < 65536) and f"PORT must be 1 to 65535, got {port!r}: try make serve PORT=8001")' '$(PORT)'
	@$(PYTHON) -c 'import socket, sys; sys.exit(not socket.socket().connect_ex(("localhost", int(sys.argv[1]))) and "port $(PORT) is in use: try make serve PORT=...")' '$(PORT)'
	@$(PYTHON) -m http.server --bind localhost --directory _build/html $(PORT)

benchmarks: $(READY) ## measure time and memory again (writes benchmarks/results/, which the book shows)
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/commands.py sweep

claims: $(READY) ## try all claims at seeds that nobody has looked at (hours; goes on where it was stopped)
	@$(BIN)/python benchmarks/claims.py $(ARGS)

planner: $(READY) ## compare what the planner says with the protocols, user by user, on random questions (ten minutes)
	@$(BIN)/python benchmarks/planner.py $(ARGS)

grid: $(READY) ## ask the planner what the fields of its page answer (seven minutes)
	@$(BIN)/python benchmarks/planner_grid.py

searches: $(READY) ## errors of 60 random searches beside what is predicted of them (writes benchmarks/results/search_truth.csv)
	@$(BIN)/python benchmarks/search_truth.py $(ARGS)

peers: $(READY) ## compare with other packages, each in its own environment (an hour or less; writes benchmarks/results/peers*)
	@$(BIN)/python benchmarks/compare.py $(ARGS)

mutants: $(READY) ## put mistakes into the library: which do rows, generators and tests notice? (an hour)
	@$(if $(ARGS),,PRIVACY_SETTINGS=10 $(BIN)/pytest $(PARALLEL) $(GENERATORS))
	@$(BIN)/python benchmarks/mutants.py $(ARGS)

faults: $(READY) ## stop book, run and sweep at 30 random moments each and go on (half an hour)
	@$(BIN)/python benchmarks/faults.py $(ARGS)

matrix: $(READY) ## unit and privacy tests on each Python that is installed, with the oldest and the newest packages (half an hour)
	@echo pip | $(BIN)/uv pip compile --quiet - >/dev/null 2>&1 || { echo "make matrix needs a package index, and uv reaches none" >&2; exit 3; }
	@$(BIN)/nox $(ARGS)

artifact: $(READY) ## measure what the commands of the artifact appendix cost (ten minutes)
	@$(BIN)/python benchmarks/commands.py artifact $(ARGS)

audits: $(READY) ## how often `evolvingdp audit` refutes mechanisms with known mistakes (ten minutes)
	@$(BIN)/python benchmarks/audits.py $(ARGS)

loop: $(READY) ## measure set-up, book and tests in a clean clone (half an hour; writes benchmarks/results/)
	@$(BIN)/python benchmarks/commands.py loop

front: book ## the README's figure from the book's results (PRESET=paper)
	@cp book/results/card-words.svg book/_static/front.svg

release: test pdf zip ## what an archive needs, in _build/release: wheel, book, PDF, checksums (PRESET=paper)
	@$(BIN)/python .ci/release.py

lock: $(READY) ## resolve requirements.lock again, to the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile pyproject.toml --extra run --group dev --universal --python-version 3.11.5 --generate-hashes \
	  --no-emit-index-url --no-annotate --custom-compile-command "make lock" --upgrade -o requirements.lock -q

clean: ## remove the environment, the cache, results and pages (what git does not track)
	rm -rf .venv .venv-new .venv-old .cache _build book/results .mypy_cache .ruff_cache .hypothesis

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) .ci/setup.py
