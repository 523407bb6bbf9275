//! The audit log: entry, hash chain, signature, verification; no I/O, no clock.
