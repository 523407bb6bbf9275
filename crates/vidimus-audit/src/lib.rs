//! The audit log: what an entry says, how entries are chained and signed, and how a log is checked.
//!
//! A log is a sequence of lines, one an entry: a JSON object, one space, and the unpadded base64
//! of an Ed25519 signature over exactly the object's bytes. Each object carries the SHA-256 of the
//! object before it, so that a line can't be changed, taken out, put in or moved without breaking
//! the chain. What a chain alone can't show is a missing end: whoever wants to know that keeps a
//! [`Head`] (the number and hash of some entry) elsewhere and gives it to the
//! [`Verifier`](verify::Verifier).
//!
//! This crate does no I/O and reads no clock: the time of an entry is given to
//! [`chain::append`], lines come from the caller.

pub mod chain;
pub mod entry;
pub mod seed;
pub mod verify;

pub use chain::{Head, Line};
pub use entry::{Draft, Entry, Outcome};
pub use seed::{AuditKey, AuditPublicKey, AuditSeed};
