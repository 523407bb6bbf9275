//! Whole processes and real peers: conformance.
