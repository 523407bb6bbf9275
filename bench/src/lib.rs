//! Benchmarks beside real peers, as ratios in one run.
