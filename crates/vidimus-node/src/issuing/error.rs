//! Why nothing was issued.

use vidimus_store::StoreError;
use vidimus_x509::{
    csr::CsrError,
    issue::{PlanError, Refusal},
    serial::SerialError,
    signer::SignError,
};

/// Why no certificate was issued. Nothing left the process, and the refusal is in the audit log.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The CSR is broken, or its key is none that is certified.
    #[error(transparent)]
    Csr(#[from] CsrError),
    /// A name that was asked for is no IP address.
    #[error("{found:?} is not an IP address")]
    IpAddress {
        /// The text.
        found: String,
    },
    /// Names were asked for under a profile that has its own.
    #[error(
        "profile {profile} takes no names from the request; accepted: a profile with allow_request_sans"
    )]
    NamesNotAllowed {
        /// The profile.
        profile: String,
    },
    /// The node waits for its own certificate.
    #[error("this node has no CA certificate yet; its chain must be brought first")]
    NoIdentity,
    /// The profile cannot make a certificate of this request.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It could not be recorded, so it does not exist.
    #[error("record the certificate")]
    Record {
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// A refusal that could not be recorded; the caller learns only that the call failed.
    #[error("record the refusal: {refusal}")]
    RecordRefusal {
        /// What was refused.
        refusal: String,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// A root issues no leaves.
    #[error(
        "a root issues no leaves; accepted: pki.root_leaf_issuance set to exactly `acknowledged-irreversible`"
    )]
    RootLeaves,
    /// No serial number.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// The key failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// There is no such profile.
    #[error("there is no profile {found:?}; accepted: {}", list(accepted))]
    UnknownProfile {
        /// What was asked for, cut to 64 characters.
        found: String,
        /// The profiles of the right kind.
        accepted: Vec<String>,
    },
    /// A CA profile for a leaf, or the other way round.
    #[error("profile {profile} is for {found}; accepted: {}", list(accepted))]
    WrongKind {
        /// The profile.
        profile: String,
        /// What it makes.
        found: &'static str,
        /// The profiles of the right kind.
        accepted: Vec<String>,
    },
}

/// Whose matter an [`IssueError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This CA's: key, store, random source. Asking again may help.
    Internal,
    /// The CA's rules or state forbid it.
    Policy,
    /// The request's: asking again won't help.
    Request,
}

impl IssueError {
    /// Whose matter it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Csr(_)
            | Self::IpAddress { .. }
            | Self::UnknownProfile { .. }
            | Self::WrongKind { .. } => Fault::Request,
            Self::NamesNotAllowed { .. } | Self::NoIdentity | Self::RootLeaves => Fault::Policy,
            Self::Plan(plan) => match plan.kind() {
                Refusal::Policy => Fault::Policy,
                Refusal::Request => Fault::Request,
            },
            Self::Record { .. } | Self::RecordRefusal { .. } | Self::Serial(_) | Self::Sign(_) => {
                Fault::Internal
            }
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none, since the config has no such profile".to_owned()
    } else {
        names.join(", ")
    }
}
