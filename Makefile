# One target for each thing a contributor or CI does; `make` alone lists them.
# Plain enough for the GNU Make 3.81 that macOS ships.
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# kernels/ and engine/ must never be importable under their bare names: another distribution is called `kernels`.
export PYTHONSAFEPATH := 1
# Without compiled files every start would compile the project and its tests again.
unexport PYTHONDONTWRITEBYTECODE
# Checkpoints that `run` makes are reused by `test`, and the other way round.
STATICFIRE_CACHE ?= $(CURDIR)/.cache
export STATICFIRE_CACHE

VENV := .venv
PY := $(VENV)/bin/python
# PYTHON=/path/to/python3.12 chooses the interpreter; otherwise the first that is new enough.
PYTHONS := $(if $(PYTHON),$(PYTHON),python3 python3.11 python3.12 python3.13)
# Worker processes: one a core, at most four, for each holds a copy of torch.
JOBS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 4 ? cores : 4)))
# Where tools/vllm_envs.py puts the releases of vLLM.
VLLM_ENVS = $(if $(STATICFIRE_VLLM_ENVS),$(STATICFIRE_VLLM_ENVS),$(HOME)/.cache/staticfire/vllm)
# More arguments for the command behind a target: make test ARGS="-k scheduler"
ARGS ?=
# Buildkite's collector complains without a token, so it is loaded only where there is one.
PYTEST = $(PY) -m pytest -n $(JOBS) --dist worksteal $(if $(BUILDKITE_ANALYTICS_TOKEN),,-p no:buildkite-test-collector)

# Named after the content that decides what is installed, so a second `make` starts at once and an edit reinstalls.
KEY := $(shell { cat pyproject.toml constraints.txt tools/install.py; pwd; } | cksum | cut -d ' ' -f 1)
STAMP := $(VENV)/.installed-$(KEY)

.PHONY: help setup run test test-vllm kernels nightly differential planted mutants lint format types docs bench wheel clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## make .venv with the pinned dependencies and this package (every target does it when needed)

$(PY):
	@found=; \
	for python in $(PYTHONS); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "make: no Python 3.11 or newer among: $(PYTHONS). Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi; \
	echo "make: creating $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv $(VENV) || { \
	  rm -rf $(VENV); echo "make: '$$found -m venv' failed; on Debian and Ubuntu the package python3-venv provides it" >&2; exit 1; \
	}

$(STAMP): $(PY)
	@$(PY) tools/install.py
	@rm -f $(VENV)/.installed-*
	@touch $@

run: $(STAMP) ## run the hybrid matrix on the reference engine; the report goes to staticfire-report/
	$(PY) -m staticfire run hybrid -j $(JOBS) $(ARGS)

test: $(STAMP) ## every test but the nightly ones
	$(PYTEST) $(ARGS)

test-vllm: $(STAMP) ## the probe against real releases of vLLM; installs them (gigabytes) on the first run
	$(PY) tools/vllm_envs.py --sources
	$(PYTEST) -m "vllm and not nightly" tests/integration_vllm $(ARGS)

kernels: $(STAMP) ## compile every kernel for six GPUs and hold each to its budget
	$(PY) -m staticfire kernels --check $(ARGS)

nightly: $(STAMP) ## the tests that are too long for every change
	HYPOTHESIS_PROFILE=nightly $(PYTEST) -m nightly --timeout 3600 $(ARGS)
	$(MAKE) differential
	$(MAKE) planted
	$(MAKE) mutants

differential: $(STAMP) ## our rules beside two releases of vLLM over 1,500 configurations each; installs them (gigabytes)
	$(PY) tools/vllm_envs.py 0.28.0 0.33.0
	@status=0; \
	for version in 0.28.0 0.33.0; do \
	  $(PY) -m staticfire rules --against vllm --engine-python "$(VLLM_ENVS)/python-$$version" $(ARGS) || status=1; \
	done; \
	exit $$status

planted: $(STAMP) ## plant faults in copies of the engine, and demand that the hybrid matrix sees each
	$(PY) tools/planted -j $(JOBS)

mutants: $(STAMP) ## mutate every Triton kernel, and demand that its parity tests notice
	$(PY) tools/mutation -j $(JOBS)

lint: $(STAMP) ## ruff (rules and formatting) and the import directions
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) tools/layering.py

format: $(STAMP) ## let ruff fix and format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(STAMP) ## mypy strict over the package, the tests and the tools
	$(PY) -m mypy -p staticfire
	$(PY) -m mypy tests tools

docs: $(STAMP) ## regenerate the documents that come from code
	$(PY) tools/generate_docs.py

# The scripts share bench_common, and the safe path leaves out the folder they stand in.
bench: export PYTHONPATH := tools
bench: $(STAMP) ## the numbers of docs/benchmarks.md, on an idle machine
	$(PY) tools/bench_cli.py
	$(PY) tools/bench_config.py
	$(PY) tools/bench_ready.py
	$(PY) tools/bench_engine.py
	$(PY) tools/bench_decode.py
	$(PY) tools/bench_moe.py
	$(PY) tools/bench_processes.py

wheel: $(STAMP) ## build dist/*.tar.gz and, from it, dist/*.whl
	rm -rf dist
	$(PY) -m build --no-isolation

clean: ## remove what builds and runs leave behind, but not .venv and .cache
	rm -rf build dist staticfire-report src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## clean, and .venv and .cache too
	rm -rf $(VENV) .cache
