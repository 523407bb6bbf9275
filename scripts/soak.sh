#!/usr/bin/env bash
# Two soaks, one after the other: soak.sh SECONDS [rotations|quickstart]
#
# rotations   10,000 streams and a load of calls through a hundred rotations of leaf and CA, as 100 connections of 100
#             streams and as 2,000 of 5. Takes as long as it takes; fails on a lost call or number, or if memory grows.
# quickstart  Repeats the quickstart until the time is up. Every third run starts on a fresh folder, the others go on with
#             the CA that is there. Stops at the first run that lost a call or took a wrong turn, keeps its folder, and
#             says where it is.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: soak.sh SECONDS [rotations|quickstart]}
which=${2:-all}

rotations() {
  # Both ends of every connection are in one process, and an old connection ends after the new one has begun.
  ulimit -n "$(ulimit -Hn)"
  VIDIMUS_SOAK=full cargo test --locked --release -p vidimus-soak -- --nocapture
}

quickstart() {
  local end=$((SECONDS + seconds)) runs=0 work vidimus
  work=$(mktemp -d)
  cargo build --locked --release -p vidimus
  vidimus=${CARGO_TARGET_DIR:-target}/release/vidimus
  while [ "$SECONDS" -lt "$end" ]; do
    if [ $((runs % 3)) -eq 0 ]; then
      rm -rf "$work/data"
    fi
    if ! "$vidimus" quickstart --once -o json --data "$work/data" >"$work/stdout" 2>"$work/stderr"; then
      echo "run $((runs + 1)) failed; its folder and output are in $work"
      tail -n 1 "$work/stdout"
      exit 1
    fi
    runs=$((runs + 1))
    echo "run $runs: $(tail -n 1 "$work/stdout")"
  done
  rm -rf "$work"
  echo "$runs passed, 0 failed"
}

case $which in
  all)
    rotations
    quickstart
    ;;
  rotations | quickstart) "$which" ;;
  *)
    echo "soak.sh: $which is no soak; accepted: rotations, quickstart" >&2
    exit 2
    ;;
esac
