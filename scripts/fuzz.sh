#!/usr/bin/env bash
# The fuzz targets under libFuzzer: fuzz.sh smoke | fuzz.sh run TARGET SECONDS
#
# The smoke run is a few seconds a target on the committed inputs, built quickly and without a sanitizer; a real
# run is optimised and has the address sanitizer. New inputs go to fuzz/target, never into the committed corpus.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=(certificate crl csr pem machine_config policy proxy_header)
smoke_seconds=5

nightly() { rustup toolchain list 2>/dev/null | grep -q '^nightly'; }

# fuzz TARGET SECONDS OPTIONS-FOR-CARGO-FUZZ...
fuzz() {
  local target=$1 seconds=$2
  shift 2
  local found=fuzz/target/corpus/$target
  mkdir -p "$found"
  cargo +nightly fuzz run "$@" "$target" "$found" "fuzz/corpus/$target" -- \
    "-max_total_time=$seconds" -max_len=65600 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1
}

case ${1:-} in
  smoke)
    if ! nightly; then
      echo "fuzz smoke: no nightly Rust here, so no libFuzzer; tests/conformance has fed the parsers on this toolchain"
      exit 0
    fi
    PATH="$(dirname "$(scripts/tool.sh cargo-fuzz)"):$PATH"
    cargo +nightly fuzz build --dev --sanitizer none
    status=0
    for target in "${targets[@]}"; do
      if fuzz "$target" "$smoke_seconds" --dev --sanitizer none; then
        echo "fuzz smoke: $target ok"
      else
        echo "fuzz smoke: $target FAILED"
        status=1
      fi
    done
    exit "$status"
    ;;
  run)
    target=${2:?which target: ${targets[*]}}
    seconds=${3:?how many seconds}
    if ! nightly; then
      echo "libFuzzer needs a nightly toolchain: rustup toolchain install nightly" >&2
      exit 1
    fi
    PATH="$(dirname "$(scripts/tool.sh cargo-fuzz)"):$PATH"
    fuzz "$target" "$seconds" --sanitizer address
    ;;
  *)
    echo "usage: fuzz.sh smoke | fuzz.sh run TARGET SECONDS" >&2
    exit 2
    ;;
esac
