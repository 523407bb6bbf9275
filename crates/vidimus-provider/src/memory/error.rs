//! Why the in-memory provider refuses, and the status that a caller sees.

use tonic::{Code, Status};

/// Why a request was refused, or a task failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The name belongs to another machine.
    #[error("{name:?} is taken by {id}, which is no clone of {source_id}")]
    AlreadyExists {
        /// The name.
        name: String,
        /// Whose it is.
        id: String,
        /// What was to be cloned.
        source_id: String,
    },
    /// It can be done when something else is finished.
    #[error("{id} is busy: {what}; try again")]
    Busy {
        /// The machine.
        id: String,
        /// What is under way.
        what: &'static str,
    },
    /// A bound is reached.
    #[error("no room for another of {what}; the limit is {limit}")]
    Exhausted {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A field doesn't hold what it must.
    #[error("{field}: found {found}; accepted: {accepted}")]
    Invalid {
        /// The field, with its place in a JSON document: `class_json.CPU`.
        field: String,
        /// What it holds.
        found: String,
        /// What it may hold.
        accepted: String,
    },
    /// There is no such thing.
    #[error("{kind} {id:?} does not exist")]
    Missing {
        /// `virtual machine`, `snapshot`, `disk` or `task`.
        kind: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The machine's state doesn't allow it.
    #[error("{id}: {needed}")]
    State {
        /// The machine.
        id: String,
        /// What would have to be so.
        needed: &'static str,
    },
    /// Memory cannot do this.
    #[error("the in-memory provider cannot {what}: {why}")]
    Unsupported {
        /// The work.
        what: &'static str,
        /// The reason.
        why: &'static str,
    },
}

impl From<MemoryError> for Status {
    fn from(error: MemoryError) -> Self {
        let code = match &error {
            MemoryError::AlreadyExists { .. } => Code::AlreadyExists,
            MemoryError::Busy { .. } => Code::Unavailable,
            MemoryError::Exhausted { .. } => Code::ResourceExhausted,
            MemoryError::Invalid { .. } => Code::InvalidArgument,
            MemoryError::Missing { .. } => Code::NotFound,
            MemoryError::State { .. } => Code::FailedPrecondition,
            MemoryError::Unsupported { .. } => Code::Unimplemented,
        };
        Self::new(code, error.to_string())
    }
}
