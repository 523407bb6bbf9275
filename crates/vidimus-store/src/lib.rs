//! What a node must not forget: the certificates it issued, its audit log, its configuration and
//! the history of its CA identity, in one database.
//!
//! - An issuance is one transaction: the certificate, its profile, its requester and the audit
//!   entry are written together or not at all, and the answer comes after the commit is on disk.
//!   [`Recorded`] is the proof, and only [`Store::record_issuance`] mints one: whoever hands out
//!   nothing but `Recorded` certificates never hands out one that a crash makes unknown.
//! - The audit table is the log. Its entries are chained and signed in the order in which they are
//!   committed; daily files are written after the commit, from what the table holds ([`export`]).
//! - What is written is never changed or deleted: certificates and audit entries by triggers of
//!   the database, the configuration by keeping every generation.
//!
//! [`Store`] is one concrete type. Its back end is private: SQLite today, and nothing of it shows
//! in a signature, so that another one changes no caller. `store_suite!` (feature `suite`) is the set
//! of tests that every back end has to pass.

pub mod certificate;
pub mod config;
mod error;
pub mod export;
pub mod identity;
mod reader;
mod recorded;
mod sqlite;
mod store;
#[cfg(feature = "suite")]
pub mod suite;
pub mod verify;

pub use certificate::{Cursor, Issuance, IssuedCertificate, IssuedFilter, Page};
pub use config::StoredConfig;
pub use error::{Cause, OpenError, StoreError};
pub use identity::{Identity, IdentityId, IdentityRow, IdentityState};
pub use reader::{AuditLine, Reader};
pub use recorded::Recorded;
pub use store::{Clock, Options, Store};
