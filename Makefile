# Every target does its own set-up. `make help` lists them.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: run test lint bench fuzz soak docs reference help

run: ## Start a CA, a provider and a manager, and rotate everything while calls flow (ARGS=--once: end by itself)
	@scripts/setup.sh build
	@cargo run --locked -p vidimus -- quickstart $(ARGS)

test: ## Run all tests: crates, whole processes, real peers, and a few seconds of fuzzing for each parser
	@scripts/setup.sh test
	@scripts/test.sh

lint: ## Check format, dependencies, documentation and clippy without running anything
	@scripts/setup.sh lint
	@scripts/lint.sh

bench: ## Measure issuing and connections beside other programs; results in target/bench.jsonl (ARGS: passed on)
	@scripts/setup.sh test
	@cargo run --locked --release -p vidimus-bench -- $(ARGS)

fuzz: ## Fuzz one parser for a while (TARGET=certificate|crl|csr|pem|machine_config|policy|proxy_header TIME=600)
	@scripts/setup.sh test
	@scripts/fuzz.sh run "$(or $(TARGET),csr)" "$(or $(TIME),600)"

soak: ## 10,000 streams through 100 rotations, then the quickstart over and over (TIME=600 WHICH=rotations|quickstart)
	@scripts/setup.sh build
	@scripts/soak.sh "$(or $(TIME),600)" $(WHICH)

docs: ## Build the book into docs/book
	@scripts/setup.sh lint
	@"$$(scripts/tool.sh mdbook)" build docs
	@echo "docs/book/index.html"

reference: ## Write docs/src/reference/cli.md anew from the program
	@scripts/setup.sh build
	@VIDIMUS_UPDATE_DOCS=1 cargo test --locked -p vidimus-conformance the_page_of_the_command_line

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
