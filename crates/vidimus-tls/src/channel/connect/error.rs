//! Why an attempt to connect failed, and at which step.

use std::io;
use std::time::Duration;

use crate::channel::wire::WireError;
use crate::verify::Refusal;

/// What an attempt to connect was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// Looking up the host's addresses.
    Resolve,
    /// Opening the socket.
    Connect,
    /// The TLS handshake.
    Handshake,
    /// Waiting for the server's first byte, which says that it has accepted our certificate.
    FirstByte,
}

impl Step {
    fn text(self) -> &'static str {
        match self {
            Self::Resolve => "look up the host",
            Self::Connect => "open the socket",
            Self::Handshake => "finish the TLS handshake",
            Self::FirstByte => "hear the server's first byte",
        }
    }
}

/// Why a connection did not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server accepted TLS but not HTTP/2.
    #[error("{address}: server did not choose ALPN h2")]
    Alpn {
        /// The server's address.
        address: String,
    },
    /// The channel was closed.
    #[error("the channel was closed")]
    Closed,
    /// rustls will not have the configuration.
    #[error("cannot configure TLS")]
    Configure(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The socket could not be opened.
    #[error("{address}: cannot open the socket")]
    Connect {
        /// The server's address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("{address}: TLS handshake failed")]
    Handshake {
        /// The server's address.
        address: String,
        /// What was wrong, or the alert that the server sent.
        source: io::Error,
    },
    /// The connection cannot carry HTTP/2.
    #[error("{address}: cannot start HTTP/2")]
    Http2 {
        /// The server's address.
        address: String,
        /// hyper's reason.
        source: hyper::Error,
    },
    /// The host has no address.
    #[error("{host}: no address")]
    NoAddress {
        /// The host.
        host: String,
    },
    /// The server's first bytes are something else than HTTP/2.
    #[error("{address}: server does not speak HTTP/2")]
    NotHttp2 {
        /// The server's address.
        address: String,
    },
    /// The runtime that the channel was made with has not begun to run.
    #[error("the channel's runtime is not running")]
    NotRunning,
    /// Trust moved on while the connection was made, and its server is not trusted any more.
    #[error("{address}: certificate of the server refused, since trust has changed meanwhile")]
    Overtaken {
        /// The server's address.
        address: String,
        /// Why.
        source: Refusal,
    },
    /// The server ended the connection instead of accepting it, usually because of our certificate.
    #[error("{address}: server refused the connection")]
    Refused {
        /// The server's address.
        address: String,
        /// How the connection ended; a TLS alert by its name. `None` if it was closed without a word.
        source: Option<ServerRefusal>,
    },
    /// The host's addresses cannot be looked up.
    #[error("{host}: cannot look up its addresses")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// The server's certificate was refused by us.
    #[error("{address}: certificate of the server refused")]
    ServerCertificate {
        /// The server's address.
        address: String,
        /// Why.
        source: Refusal,
    },
    /// It took too long.
    #[error("{address}: could not {} within {after:?}", step.text())]
    TimedOut {
        /// The server's address.
        address: String,
        /// What was going on.
        step: Step,
        /// The time this address had.
        after: Duration,
    },
}

/// How a server ended a connection that it did not accept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ServerRefusal(pub(super) WireError);

impl ConnectError {
    /// Whether the server hung up without saying anything against us, as one does that is just being replaced.
    pub(in crate::channel) fn is_hang_up(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let kind = match self {
            Self::Refused { source: None, .. } => return true,
            Self::Refused {
                source: Some(refusal),
                ..
            } => refusal.0.kind(),
            Self::Handshake { source, .. } => source.kind(),
            _ => return false,
        };
        matches!(
            kind,
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
        )
    }

    /// How far the attempt came. Of several addresses, the one that came furthest tells most.
    pub(super) fn step(&self) -> Step {
        match self {
            Self::Closed
            | Self::Configure(_)
            | Self::NoAddress { .. }
            | Self::NotRunning
            | Self::Resolve { .. } => Step::Resolve,
            Self::Connect { .. } => Step::Connect,
            Self::Alpn { .. }
            | Self::Handshake { .. }
            | Self::Overtaken { .. }
            | Self::ServerCertificate { .. } => Step::Handshake,
            Self::Http2 { .. } | Self::NotHttp2 { .. } | Self::Refused { .. } => Step::FirstByte,
            Self::TimedOut { step, .. } => *step,
        }
    }
}
