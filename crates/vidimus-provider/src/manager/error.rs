//! What a failed call means to a manager.

use tonic::{Code, Status};

/// A call that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{method}: {:?}: {}", status.code(), status.message())]
pub struct CallError {
    method: &'static str,
    status: Box<Status>,
}

/// What a manager does about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The provider failed in a way that trying again won't help.
    Failed,
    /// The request is wrong: the object's spec has to change.
    InvalidSpec,
    /// There is no such object.
    NotFound,
    /// The provider could not be reached, or is busy: try again.
    Retryable,
    /// The provider doesn't accept this manager: certificates or the allow-list have to change.
    Unauthorized,
    /// The provider cannot do this.
    Unsupported,
}

impl CallError {
    pub(super) fn new(method: &'static str, status: Status) -> Self {
        Self {
            method,
            status: Box::new(status),
        }
    }

    /// The method: `Validate`.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// What the provider, or the connection to it, answered.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// What to do about it.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.status.code() {
            Code::NotFound => Outcome::NotFound,
            Code::InvalidArgument | Code::OutOfRange => Outcome::InvalidSpec,
            Code::Unavailable | Code::DeadlineExceeded => Outcome::Retryable,
            Code::Unauthenticated | Code::PermissionDenied => Outcome::Unauthorized,
            Code::Unimplemented => Outcome::Unsupported,
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::AlreadyExists
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::Internal
            | Code::DataLoss => Outcome::Failed,
        }
    }
}
