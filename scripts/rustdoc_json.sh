#!/usr/bin/env bash
# rustdoc with its unstable options allowed, for Cargo to run as RUSTDOC: its JSON output is one of them. In Cargo's own
# environment the same word would make half of the dependencies compile anew.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
