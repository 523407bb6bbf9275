//! Why a handshake failed, in a word for counters and a sentence for the log.

use std::io;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

use super::socket::Socket;
use crate::verify::Refusal;

/// A failed handshake, with the socket if the peer should still read the alert.
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) socket: Option<Socket>,
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("the client offered {offered} instead of the protocol {wanted}")]
    Alpn {
        offered: String,
        wanted: &'static str,
    },
    #[error(transparent)]
    Certificate(Refusal),
    #[error("the client closed the connection during the handshake")]
    Closed,
    #[error("configuration")]
    Configuration(#[source] Error),
    #[error("the connection was dropped to make room for newer ones before its handshake was done")]
    Displaced,
    #[error("the client refused this server with the alert {0:?}")]
    ClientAlert(AlertDescription),
    #[error("the client offered no protocol or algorithm in common: {0:?}")]
    Incompatible(PeerIncompatible),
    #[error("the client sent something that is not TLS: it may be configured for plaintext")]
    NotTls,
    #[error("the client presented no certificate")]
    NoCertificate,
    #[error("the verifier left no identity")]
    NoIdentity,
    #[cfg(feature = "proxy-protocol")]
    #[error(transparent)]
    Proxy(super::listener::proxy::HeaderError),
    #[error("the handshake took longer than it may")]
    Timeout,
    #[error("transport")]
    Transport(#[source] io::Error),
    #[error("TLS")]
    Tls(#[source] Error),
}

impl Cause {
    /// A word for counters: few and fixed.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Alpn { .. } => "alpn",
            Self::Certificate(refusal) => refusal.reason(),
            Self::ClientAlert(_) => "client_alert",
            Self::Closed => "closed",
            Self::Configuration(_) => "configuration",
            Self::Displaced => "displaced",
            Self::Incompatible(_) => "incompatible",
            Self::NotTls => "not_tls",
            Self::NoCertificate => "no_certificate",
            Self::NoIdentity => "no_identity",
            #[cfg(feature = "proxy-protocol")]
            Self::Proxy(_) => "proxy_header",
            Self::Timeout => "timeout",
            Self::Transport(_) => "transport",
            Self::Tls(_) => "tls",
        }
    }

    /// What tokio-rustls reported; `refusal` is what our verifier left, which says more than rustls' error.
    pub(super) fn of(error: io::Error, refusal: Option<&Refusal>) -> Self {
        if let Some(refusal) = refusal {
            return Self::Certificate(refusal.clone());
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => return Self::Closed,
            _ => {}
        }
        match error.downcast::<Error>() {
            Ok(error) => Self::of_rustls(error),
            Err(error) => Self::Transport(error),
        }
    }

    fn of_rustls(error: Error) -> Self {
        match error {
            Error::AlertReceived(alert) => Self::ClientAlert(alert),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => Self::NotTls,
            Error::NoCertificatesPresented => Self::NoCertificate,
            Error::PeerIncompatible(what) => Self::Incompatible(what),
            other => Self::Tls(other),
        }
    }
}
