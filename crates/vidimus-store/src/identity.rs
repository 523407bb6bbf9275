//! The history of the CA's identity: which key it signs with, which it signed with before, and
//! which waits for its certificate.

use std::fmt;
use std::time::SystemTime;

use vidimus_audit::Draft;

/// An identity's number, in the order in which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityId(pub(crate) i64);

impl fmt::Display for IdentityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an identity is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityState {
    /// Its key is made and its CSR is out; there is no certificate yet. At most one.
    Awaiting,
    /// The one that signs. At most one.
    Current,
    /// It signed once, and what it signed may still be valid; or it waited and was given up.
    Past,
}

/// An identity to be recorded. Without a chain it waits for one; with one (a root that signs
/// itself, a restored key) it is the current one at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRow {
    /// The key's file, by name (no folder): the store holds no keys.
    pub key_file: String,
    /// The CSR for the key, DER.
    pub csr_der: Option<Vec<u8>>,
    /// The certificate and those above it, PEM, its own first.
    pub chain_pem: Option<String>,
}

/// A recorded identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub id: IdentityId,
    /// What it is used for.
    pub state: IdentityState,
    /// See [`IdentityRow::key_file`].
    pub key_file: String,
    /// See [`IdentityRow::csr_der`].
    pub csr_der: Option<Vec<u8>>,
    /// See [`IdentityRow::chain_pem`].
    pub chain_pem: Option<String>,
    /// When it was recorded, to the millisecond.
    pub created_at: SystemTime,
    /// When it became the current one.
    pub activated_at: Option<SystemTime>,
}

/// An [`IdentityRow`] with what the audit log says of it.
#[derive(Debug)]
pub(crate) struct NewIdentity {
    pub(crate) row: IdentityRow,
    pub(crate) audit: Draft,
}

/// The step from awaiting to current.
#[derive(Debug)]
pub(crate) struct Activation {
    pub(crate) id: IdentityId,
    pub(crate) chain_pem: String,
    pub(crate) audit: Draft,
}
