//! What is spoken over TLS.

/// HTTP/2 in ALPN (RFC 9113 §3.2).
pub(crate) const ALPN_H2: &[u8] = b"h2";
/// HTTP/1.1 in ALPN (RFC 7301 §6).
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What a listener speaks, and so what it names in ALPN (RFC 7301).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/2 alone, as gRPC needs it. A client that doesn't offer `h2` is refused with `no_application_protocol`.
    #[default]
    H2,
    /// HTTP/2, else HTTP/1.1, which is also what a client that uses no ALPN gets. One that offers neither is refused.
    H2AndHttp1,
    /// Something of the server's own: no ALPN, and whatever a client offers there is not looked at.
    None,
}

/// What a client and a listener agreed on in ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, or whatever a client without ALPN speaks where HTTP/1.1 would do.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocols {
    /// For messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::H2 => "h2",
            Self::H2AndHttp1 => "h2 or http/1.1",
            Self::None => "none",
        }
    }

    pub(super) fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::H2 => vec![ALPN_H2.to_vec()],
            Self::H2AndHttp1 => vec![ALPN_H2.to_vec(), ALPN_HTTP1.to_vec()],
            Self::None => Vec::new(),
        }
    }

    /// Whether a client may go on that offers this. rustls refuses foreign protocols, but not a client without any.
    pub(crate) fn accept(self, offered: Option<&[&[u8]]>) -> bool {
        match (self, offered) {
            (Self::H2, None) => false,
            (Self::H2, Some(offered)) => offered.contains(&ALPN_H2),
            (Self::H2AndHttp1, Some(offered)) => {
                offered.contains(&ALPN_H2) || offered.contains(&ALPN_HTTP1)
            }
            (Self::H2AndHttp1, None) | (Self::None, _) => true,
        }
    }

    /// What is spoken after a handshake that agreed on this; the outer `None` if it must not go on.
    pub(crate) fn agreed(self, alpn: Option<&[u8]>) -> Option<Option<Protocol>> {
        match (self, alpn) {
            (Self::H2 | Self::H2AndHttp1, Some(ALPN_H2)) => Some(Some(Protocol::Http2)),
            (Self::H2AndHttp1, Some(ALPN_HTTP1) | None) => Some(Some(Protocol::Http1)),
            (Self::None, None) => Some(None),
            (Self::H2 | Self::H2AndHttp1 | Self::None, _) => None,
        }
    }
}
