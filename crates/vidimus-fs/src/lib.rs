//! Files that survive a crash.
//!
//! What a certificate authority keeps on disk must be there after a power cut, must never be seen
//! half written, and must be readable by its owner alone where it is secret. This crate is the one
//! place that knows how: temporary file, `fsync`, rename, `fsync` of the folder. It knows nothing
//! of certificates, has no clock and no async runtime.
//!
//! - [`durable`]: one file, replaced as a whole or not at all;
//! - [`bundle`]: several files that change together (the layout that the kubelet uses);
//! - [`dir`]: folders that only their owner may enter;
//! - [`lock`]: one process at a time;
//! - [`read`]: reads with a bound, with "not found" apart from every other failure.

pub mod bundle;
pub mod dir;
pub mod durable;
pub mod lock;
pub mod read;

pub use durable::Mode;
