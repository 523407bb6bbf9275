//! Nothing but tests: see `tests/it`. The long form of them runs with `make soak`.
