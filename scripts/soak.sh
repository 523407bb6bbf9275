#!/usr/bin/env bash
# Repeats the quickstart until the time is up: soak.sh SECONDS
# Every third run starts on a fresh folder, the others go on with the CA that is there. Stops at the first run that
# lost a call or took a wrong turn, keeps its folder, and says where it is.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: soak.sh SECONDS}
end=$((SECONDS + seconds))
work=$(mktemp -d)
cargo build --locked --release -p vidimus
vidimus=${CARGO_TARGET_DIR:-target}/release/vidimus

runs=0
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
