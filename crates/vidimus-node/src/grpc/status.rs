//! Where errors become gRPC statuses: the only place, and every error has its line.
//!
//! What a caller can mend is told; what only the operator can mend is logged under an id, and the caller gets the id.

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use tonic::{Code, Status};
use vidimus_daemon::telemetry;
use vidimus_store::StoreError;
use vidimus_x509::serial::SerialError;

use crate::{
    applying::ApplyError,
    issuing::{Fault, IssueError},
    rotation::RotationError,
};

/// The longest message: it travels in a header, whose size clients bound.
const MAX_MESSAGE: usize = 4096;

/// Why a method failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// `ApplyConfig`.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// An audit line of the store can't be read.
    #[error("audit entry {seq}")]
    AuditEntry {
        /// Its number.
        seq: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// `IssueLeaf` and `SignSubordinateCSR`.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// There is no certificate yet.
    #[error("this node has no CA certificate yet; its chain must be brought first")]
    NoIdentity,
    /// There is no such certificate.
    #[error("no certificate with serial number {serial} was issued by this node")]
    NotFound {
        /// The serial number.
        serial: String,
    },
    /// A page token that no answer gave.
    #[error("{found:?} is not a page token; accepted: next_page_token of the answer before")]
    PageToken {
        /// The token, cut.
        found: String,
    },
    /// Key rotation.
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// A serial number that is none.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RpcError {
    /// The status for the caller; internal detail goes to the log.
    pub(crate) fn into_status(self) -> Status {
        match self.code() {
            Code::Internal => internal(&self),
            code => Status::new(code, clip(telemetry::chain(&self).to_string())),
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Apply(ApplyError::Config(_) | ApplyError::Role { .. })
            | Self::PageToken { .. }
            | Self::Serial(_) => Code::InvalidArgument,
            Self::Apply(ApplyError::Store(_)) | Self::AuditEntry { .. } | Self::Store(_) => {
                Code::Internal
            }
            Self::Issue(issue) => match issue.fault() {
                Fault::Internal => Code::Internal,
                Fault::Policy => Code::FailedPrecondition,
                Fault::Request => Code::InvalidArgument,
            },
            Self::NoIdentity => Code::FailedPrecondition,
            Self::NotFound { .. } => Code::NotFound,
            Self::Rotation(rotation) => match rotation {
                RotationError::Chain(_) => Code::InvalidArgument,
                RotationError::NothingWaits | RotationError::Root => Code::FailedPrecondition,
                RotationError::Anchor(_)
                | RotationError::Key(_)
                | RotationError::Request(_)
                | RotationError::Store(_) => Code::Internal,
            },
        }
    }
}

fn internal(error: &RpcError) -> Status {
    let mut bytes = [0; 6];
    // Without random bytes the id is zeros; the log line is there all the same.
    let _best_effort = SystemRandom::new().fill(&mut bytes);
    let incident = data_encoding::HEXLOWER.encode(&bytes);
    tracing::error!(incident, error = %telemetry::chain(error), "call failed");
    let reason = match error {
        RpcError::Store(StoreError::Full { .. })
        | RpcError::Issue(IssueError::Record {
            source: StoreError::Full { .. },
        }) => "no room left on the node's disk",
        _ => "internal error",
    };
    Status::internal(format!("{reason}; the node's log has it under {incident}"))
}

fn clip(message: String) -> String {
    if message.len() <= MAX_MESSAGE {
        return message;
    }
    let mut length = 0;
    let fits = |c: &char| {
        length += c.len_utf8();
        length <= MAX_MESSAGE
    };
    let mut clipped: String = message.chars().take_while(fits).collect();
    clipped.push('…');
    clipped
}
