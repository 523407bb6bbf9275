#!/usr/bin/env bash
# Runs every test of the workspace and a short fuzz run, and closes with one line that counts them.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

status=0
cargo test --locked --workspace --no-fail-fast 2>&1 | tee "$log" || status=$?
scripts/fuzz.sh smoke 2>&1 | tee -a "$log" || status=$?

# Cargo closes each test binary with "test result: ok. 12 passed; 0 failed; 1 ignored; ...".
awk '
  /^test result:/ { passed += $4; failed += $6; skipped += $8 }
  /^fuzz smoke: .* ok$/ { passed += 1 }
  /^fuzz smoke: .* FAILED$/ { failed += 1 }
  END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
' "$log"
exit "$status"
