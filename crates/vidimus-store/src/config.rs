//! The machine config, in every generation that was ever in force.

use std::time::SystemTime;

use vidimus_audit::Draft;

/// A stored machine config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConfig {
    /// 1 for the first, one more with each that was stored.
    pub generation: u64,
    /// The digest the caller stored it with (SHA-256 of its canonical form, hex).
    pub digest: String,
    /// The text.
    pub yaml: String,
    /// When it was stored, to the millisecond.
    pub stored_at: SystemTime,
}

/// A config to be stored as the next generation.
#[derive(Debug)]
pub(crate) struct NewConfig {
    pub(crate) yaml: String,
    pub(crate) digest: String,
    pub(crate) audit: Draft,
}
