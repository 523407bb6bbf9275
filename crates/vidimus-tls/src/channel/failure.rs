//! What went wrong with a call, and what that means: a status for the caller, and whether the server can have processed it.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use h2::Reason;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use tonic::{Code, Status};

use super::connect::ConnectError;
use super::connection::Connection;
use super::target::Target;

/// Whether a failed call can have reached the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It cannot, and its connection takes no others either: it ended, or is about to.
    Ended,
    /// It cannot: the server refused this one stream.
    Refused,
    /// It may have.
    Unknown,
}

/// Reads the fate of a call from hyper's error.
///
/// `given_back` says that hyper returned the request because it never wrote it. An error of a stream that is a remote
/// GOAWAY means that the stream is above the last one the GOAWAY names, and so was never processed, whatever the server's
/// reason (RFC 9113 §6.8): h2 gives that error to no other streams.
pub(super) fn fate(error: &hyper::Error, given_back: bool) -> Fate {
    if given_back {
        return Fate::Ended;
    }
    match h2_error(error).filter(|error| error.is_remote()) {
        Some(error) if error.is_go_away() => Fate::Ended,
        Some(error) if error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM) => {
            Fate::Refused
        }
        _ => Fate::Unknown,
    }
}

/// `UNAVAILABLE`: there is no connection.
pub(super) fn unavailable(target: &Target, error: &Arc<ConnectError>) -> Status {
    // The reason names the address, which often is the target itself.
    let reason = chain(error.as_ref());
    let reason = reason
        .strip_prefix(&format!("{target}: "))
        .unwrap_or(&reason);
    let mut status = Status::unavailable(format!("cannot connect to {target}: {reason}"));
    status.set_source(Arc::clone(error) as Arc<dyn Error + Send + Sync>);
    status
}

/// `DEADLINE_EXCEEDED`, with what was still missing.
pub(super) fn deadline_exceeded(target: &Target, missing: &str) -> Status {
    Status::deadline_exceeded(format!(
        "deadline of the call to {target} has passed: {missing}"
    ))
}

/// A call that ended with an error of HTTP/2 or below, as gRPC maps them ("HTTP2 Transport Mapping", "Errors").
pub(super) fn broken_off(target: &Target, connection: &Connection, error: hyper::Error) -> Status {
    let code = match h2_error(&error) {
        Some(h2) if h2.is_reset() => h2.reason().map_or(Code::Unavailable, reset_code),
        _ => Code::Unavailable,
    };
    let reason = match (connection.cut_reason(), connection.wire().error()) {
        (Some(reason), _) => reason.to_owned(),
        // What hyper makes of a broken connection says less than how it broke.
        (None, Some(wire)) if code == Code::Unavailable => chain(&wire),
        (None, _) => chain(&error),
    };
    let mut status = Status::new(
        code,
        format!(
            "call to {target} was broken off by {}: {reason}",
            connection.address()
        ),
    );
    status.set_source(Arc::new(error));
    status
}

/// What an answer that is no gRPC says, such as a proxy's own page ("HTTP to gRPC Status Code Mapping").
pub(super) fn not_grpc<B>(
    target: &Target,
    connection: &Connection,
    answer: &Response<B>,
) -> Option<Status> {
    let content_type = answer.headers().get(CONTENT_TYPE);
    let is_grpc =
        content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if is_grpc || answer.headers().contains_key("grpc-status") {
        return None;
    }
    let content_type = content_type.map_or("none", |value| value.to_str().unwrap_or("unreadable"));
    Some(Status::new(
        http_code(answer.status()),
        format!(
            "{} answered a call to {target} with HTTP status {} and content type {content_type}, which is not gRPC",
            connection.address(),
            answer.status(),
        ),
    ))
}

fn http_code(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Unknown,
    }
}

fn reset_code(reason: Reason) -> Code {
    match reason {
        Reason::REFUSED_STREAM => Code::Unavailable,
        Reason::CANCEL => Code::Cancelled,
        Reason::ENHANCE_YOUR_CALM => Code::ResourceExhausted,
        Reason::INADEQUATE_SECURITY => Code::PermissionDenied,
        _ => Code::Internal,
    }
}

fn h2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source().and_then(<dyn Error>::downcast_ref)
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _infallible = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
