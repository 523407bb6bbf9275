//! What went wrong, for people: the status, and what may help.

use std::{error::Error, fmt};

use tonic::{Code, Status};
use vidimus_tls::{channel::BuildError, material::MaterialError};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Address, name and protection don't go together.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The node can't be reached, or refuses.
    #[error(transparent)]
    Connect(#[from] CallError),
    /// The identity folder can't be used.
    #[error("administrator's identity")]
    Material(#[from] MaterialError),
}

/// A call that failed. Its source is the status as it came.
#[derive(Debug)]
pub struct CallError {
    // Boxed: a status is large, and this is in every result.
    status: Box<Status>,
}

impl CallError {
    /// The status as it came.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The code alone.
    #[must_use]
    pub fn code(&self) -> Code {
        self.status.code()
    }

    /// What may help, if there is something to say.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.code() {
            Code::Unavailable => Some(
                "is the node running (`vidimus node run`), is this its address, and is ca.crt the root of this node's CA?",
            ),
            Code::Unauthenticated | Code::PermissionDenied => Some(
                "the node admits one administrator: the certificate in the admin folder of its data directory, or the one \
                 that its config pins in `bootstrap`",
            ),
            Code::Unimplemented => {
                Some("the node is of another version; `vidimus status` shows it")
            }
            Code::DeadlineExceeded => Some("the node did not answer in time; its log may say why"),
            Code::Internal => Some("the node's log has the cause under the id in the message"),
            Code::Ok
            | Code::Aborted
            | Code::AlreadyExists
            | Code::Cancelled
            | Code::DataLoss
            | Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::NotFound
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::Unknown => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, message) = (self.code(), self.status.message());
        if message.is_empty() {
            write!(formatter, "{code}")
        } else {
            write!(formatter, "{code}: {message}")
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.status)
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self {
            status: Box::new(status),
        }
    }
}
