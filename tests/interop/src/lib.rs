//! Whole processes and real peers: interop.
