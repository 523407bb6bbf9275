//! For tests only: PKI builder, process harness, wait_until.
