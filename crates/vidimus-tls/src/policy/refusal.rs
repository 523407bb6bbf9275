//! The boundary where a refusal meets the protocol: the caller gets a status that says nothing about the list, the log
//! gets what was presented and what is allowed.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::Policy;
use crate::identity::{CertificateIdentity, PeerIdentity};

/// Why a call was refused before it reached its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyRefusal {
    /// There is no verified client certificate behind the call; the text says why not.
    #[error("mutual TLS is required: {0}")]
    Unauthenticated(&'static str),
    /// The certificate was verified but is not on the allow-list.
    #[error("client certificate is not on the configured allow-list")]
    NotAllowed,
    /// The peer may call, but not this method.
    #[error("caller is not permitted to call this method")]
    MethodNotAllowed,
    /// The peer of a UNIX socket runs as a user that is not on the allow-list.
    #[error("local user is not on the configured allow-list")]
    UserNotAllowed,
    /// The certificate was accepted once and no longer is; the connection is ending.
    #[error("client certificate is no longer trusted")]
    Withdrawn,
}

impl PolicyRefusal {
    /// The status for a gRPC caller.
    #[cfg(feature = "tonic")]
    #[must_use]
    pub fn to_status(self) -> tonic::Status {
        tonic::Status::new(self.code().into(), self.to_string())
    }

    /// The number of the status that a gRPC caller gets: 16 is UNAUTHENTICATED, 7 is `PERMISSION_DENIED`.
    fn code(self) -> i32 {
        match self {
            Self::Unauthenticated(_) | Self::Withdrawn => 16,
            Self::NotAllowed | Self::MethodNotAllowed | Self::UserNotAllowed => 7,
        }
    }

    fn http_status(self) -> StatusCode {
        match self {
            Self::Unauthenticated(_) | Self::Withdrawn => StatusCode::UNAUTHORIZED,
            Self::NotAllowed | Self::MethodNotAllowed | Self::UserNotAllowed => {
                StatusCode::FORBIDDEN
            }
        }
    }
}

/// The response to a refused call: for gRPC of any kind a trailers-only response, otherwise a bare HTTP status.
pub(crate) fn respond<B: Default>(
    refusal: PolicyRefusal,
    content_type: Option<&HeaderValue>,
) -> Response<B> {
    let mut response = Response::new(B::default());
    if is_grpc(content_type) {
        let headers = response.headers_mut();
        *headers = trailers(refusal);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/grpc"),
        );
        return response;
    }
    *response.status_mut() = refusal.http_status();
    let zero = HeaderValue::from_static("0");
    response.headers_mut().insert(header::CONTENT_LENGTH, zero);
    response
}

/// Whether a request with this content type is a gRPC call.
pub(crate) fn is_grpc(content_type: Option<&HeaderValue>) -> bool {
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// The status of a refused call as gRPC trailers.
pub(crate) fn trailers(refusal: PolicyRefusal) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(3);
    trailers.insert("grpc-status", HeaderValue::from(refusal.code()));
    trailers.insert("grpc-message", message(&refusal.to_string()));
    trailers
}

/// A status message as a header: what isn't printable ASCII, and the percent sign, become %XX ("gRPC over HTTP/2", Responses).
fn message(text: &str) -> HeaderValue {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | 0..b' ' | 0x7f.. => {
                // Writing to a string cannot fail.
                let _written = write!(encoded, "%{byte:02X}");
            }
            printable => encoded.push(char::from(printable)),
        }
    }
    // Nothing is left that a header could not carry.
    HeaderValue::from_str(&encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A call that the policy doesn't permit, with everything that the caller is not told.
pub(crate) struct Refused<'a> {
    pub(crate) refusal: PolicyRefusal,
    pub(crate) peer: Option<&'a PeerIdentity>,
    pub(crate) remote: &'a str,
    pub(crate) path: &'a str,
    pub(crate) policy: &'a Policy,
}

impl Refused<'_> {
    /// Logs it, or that it would have been refused.
    pub(crate) fn log(&self) {
        let identity = self.peer.and_then(PeerIdentity::certificate);
        let names = |of: fn(&CertificateIdentity) -> &[String]| {
            identity.map(|i| of(i).join(", ")).unwrap_or_default()
        };
        let user = match self.peer {
            Some(PeerIdentity::Unix(peer)) => format!("uid={} gid={}", peer.uid, peer.gid),
            _ => String::new(),
        };
        let told = if self.policy.enforces(self.refusal) {
            "call refused"
        } else {
            "call WOULD BE refused, if the policy were enforced"
        };
        tracing::warn!(
            audit = true,
            remote = self.remote,
            path = self.path,
            presented_cn = identity.and_then(|i| i.common_name()).unwrap_or_default(),
            presented_dns = names(CertificateIdentity::dns_names),
            presented_uri = names(CertificateIdentity::uri_names),
            presented_ip = identity
                .map(|i| i.ip_addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                .unwrap_or_default(),
            presented_user = user,
            allowed = self.policy.allowed_for(self.refusal, self.path),
            reason = %self.refusal,
            "{told}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V6. Without tonic's code, and read back by it.
    #[test]
    fn a_refusal_reaches_a_grpc_client_as_its_status() {
        for refusal in [
            PolicyRefusal::Unauthenticated("the connection's peer is unknown"),
            PolicyRefusal::NotAllowed,
            PolicyRefusal::MethodNotAllowed,
            PolicyRefusal::UserNotAllowed,
            PolicyRefusal::Withdrawn,
        ] {
            let grpc = HeaderValue::from_static("application/grpc+proto");
            let response: Response<()> = respond(refusal, Some(&grpc));
            assert_eq!(response.status(), StatusCode::OK);
            let read = tonic::Status::from_header_map(response.headers()).expect("a status");
            assert_eq!(read.code(), refusal.to_status().code());
            assert_eq!(read.message(), refusal.to_string());
        }
    }

    #[test]
    fn a_message_travels_as_printable_ascii() {
        assert_eq!(message("plain: it's ~"), "plain: it's ~");
        assert_eq!(message("100 %\n\u{e9}\u{7f}"), "100 %25%0A%C3%A9%7F");
    }
}
