#!/usr/bin/env bash
# Everything that is checked without running the product, the quick checks first.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$1"; }

step "format"
cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check

# The fuzz targets are a workspace of their own; after a change of dependencies, `cargo metadata` there writes its lock.
step "both lock files are up to date"
cargo metadata --locked --format-version 1 >/dev/null
cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

step "dependencies: arrows, bans, licences, sources"
deny=$(scripts/tool.sh cargo-deny)
"$deny" check --allow unused-wrapper bans licenses sources
"$deny" --config deny-dev.toml check bans sources

step "the book builds and every page of its table of contents is there"
"$(scripts/tool.sh mdbook)" build docs --dest-dir "$PWD/target/book"

step "clippy"
cargo clippy --locked --workspace --all-targets -- -D warnings

# Built together, crates share their features, which can hide that one of them does not compile by itself.
step "the published crates: each feature alone, dependencies, public API, package"
scripts/published.sh

step "documentation of the crates"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

printf '\nlint: all clean\n'
