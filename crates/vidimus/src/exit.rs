//! What a script can tell from the exit code, and the hint that goes with an error.

use std::process::ExitCode;

use vidimus_client::{
    CallError,
    tonic::{Code, Status},
};
use vidimus_node::config::ConfigErrors;

use crate::output;

/// The outcomes that scripts can tell apart. The numbers are a contract: `docs/src/reference/exit-codes.md`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// 0: done, and the answer is yes.
    Success,
    /// 1: it ran, and the answer is no; or it failed on this machine.
    Failure,
    /// 2: the command line is off (clap's own number).
    Usage,
    /// 3: the other end could not be reached, or the connection was refused.
    Unreachable,
    /// 4: the other end answered and refused.
    Refused,
}

impl Exit {
    /// The code for an error that ended a command.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return stop.exit;
        }
        match error
            .chain()
            .find_map(|cause| cause.downcast_ref::<Status>())
        {
            Some(status) => Self::of_status(status.code()),
            None => Self::Failure,
        }
    }

    fn of_status(code: Code) -> Self {
        match code {
            Code::Ok => Self::Success,
            Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable => Self::Unreachable,
            Code::Aborted
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::NotFound
            | Code::OutOfRange
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::Unauthenticated
            | Code::Unimplemented => Self::Refused,
            Code::DataLoss | Code::Internal | Code::Unknown => Self::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::Refused => 4,
        })
    }
}

/// Ends a command with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Stop {
    /// The answer is no.
    pub(crate) fn failure(message: impl Into<String>) -> anyhow::Error {
        Self {
            exit: Exit::Failure,
            message: message.into(),
        }
        .into()
    }

    /// The arguments don't make sense together.
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self {
            exit: Exit::Usage,
            message: message.into(),
        }
        .into()
    }
}

/// Says on stderr why a command ended, with every cause, and what might help.
pub(crate) fn explain(error: &anyhow::Error) {
    if let Some(config) = error.downcast_ref::<ConfigErrors>() {
        let count = config.problems().len();
        let what = if count == 1 { "problem" } else { "problems" };
        output::note(&format!("error: the config has {count} {what}\n{config}"));
        return;
    }
    output::note(&format!("error: {}", whole(error)));
    let hint = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<CallError>())
        .and_then(CallError::hint);
    if let Some(hint) = hint {
        output::note(&format!("\nhint: {hint}"));
    }
}

/// The error with its causes, down to a gRPC status where there is one: what is below a status it says itself, and so does
/// it say what a wrapper around it repeats.
fn whole(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        if let Some(status) = cause.downcast_ref::<Status>() {
            parts.retain(|part| !part.contains(status.message()));
            parts.push(format!("{}: {}", name_of(status.code()), status.message()));
            break;
        }
        let part = cause.to_string();
        if parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    parts.join(": ")
}

/// The code as gRPC writes it.
fn name_of(code: Code) -> &'static str {
    match code {
        Code::Aborted => "ABORTED",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::Cancelled => "CANCELLED",
        Code::DataLoss => "DATA_LOSS",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Internal => "INTERNAL",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::NotFound => "NOT_FOUND",
        Code::Ok => "OK",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::Unavailable => "UNAVAILABLE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Unknown => "UNKNOWN",
    }
}
