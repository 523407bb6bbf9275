//! Whole processes and real peers: e2e.
