#!/usr/bin/env bash
# What the crates that are meant for others promise: they build with each feature alone, their dependencies and the
# foreign types in their public API are the listed ones, and they can be packaged. No registry is asked anything.
#
# A list that changed on purpose is renewed with: published.sh update
set -euo pipefail
cd "$(dirname "$0")/.."

update=${1:-}
found=target/published
mkdir -p "$found"

features_of() { # CRATE: every feature but fips, which takes other build tools
  cargo metadata --locked --quiet --no-deps --format-version 1 | python3 -c '
import json, sys
packages = json.load(sys.stdin)["packages"]
features, = [package["features"] for package in packages if package["name"] == sys.argv[1]]
print(*sorted(features.keys() - {"default", "fips"}))' "$1"
}

same() { # FILE: compares target/published/FILE with the committed one
  local committed=crates/$1
  if [ "$update" = update ]; then
    cp "$found/$(basename "$1")" "$committed"
  elif ! diff -u "$committed" "$found/$(basename "$1")"; then
    echo "$committed differs (committed: -, now: +); if that is meant: scripts/published.sh update" >&2
    exit 1
  fi
}

direct() { # CRATE FEATURES: its direct dependencies
  cargo tree --locked --quiet -e normal --depth 1 --prefix none --format '{p}' -p "$1" --features "$2" |
    tail -n +2 | cut -d ' ' -f 1 | sort -u
}

for crate in vidimus-x509 vidimus-tls; do
  short=${crate#vidimus-}
  cargo clippy --locked --quiet -p "$crate" -- -D warnings
  {
    echo "# without features"
    direct "$crate" ""
    for feature in $(features_of "$crate"); do
      cargo clippy --locked --quiet -p "$crate" --features "$feature" -- -D warnings
      echo "# with $feature also"
      comm -13 <(direct "$crate" "") <(direct "$crate" "$feature")
    done
  } >"$found/dependencies.txt"
  same "$crate/dependencies.txt"

  features=$(features_of "$crate" | tr ' ' ',')
  RUSTDOC=$PWD/scripts/rustdoc_json.sh cargo rustdoc --locked --quiet -p "$crate" --lib --features "$features" -- \
    -Z unstable-options --output-format json --cap-lints allow
  scripts/public_types.py "${CARGO_TARGET_DIR:-target}/doc/vidimus_$short.json" >"$found/public-types.txt"
  same "$crate/public-types.txt"
done

makes_certificates() { # CRATE: whether it turns on, with any of its features, what makes certificates
  local tree # by itself, so that cargo's failure is not taken for a no
  tree=$(cargo tree --locked --quiet -e normal,features --prefix none --all-features -p "$1") || exit
  grep -qF 'vidimus-x509 feature "issue"' <<<"$tree"
}

# Whoever only verifies has no code that makes certificates. What the node says shows that the question finds something.
if makes_certificates vidimus-tls; then
  echo "vidimus-tls turns on what makes certificates" >&2
  exit 1
fi
makes_certificates vidimus-node || { echo "vidimus-node issues, and cargo tree does not show it" >&2; exit 1; }

cargo package --locked --offline --quiet --no-verify --allow-dirty -p vidimus-x509 -p vidimus-tls
for crate in vidimus-x509 vidimus-tls; do
  listed=$(cargo package --locked --offline --quiet --list --allow-dirty -p "$crate")
  for file in README.md Cargo.toml src/lib.rs; do
    grep -qx "$file" <<<"$listed" || { echo "the package of $crate lacks $file" >&2; exit 1; }
  done
done
