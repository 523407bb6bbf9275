//! The boundary where a refusal meets the protocol: the caller gets a status that says nothing about the list, the log
//! gets what was presented and what is allowed.

use http::{HeaderValue, Response, StatusCode, header};
use tonic::Status;

use super::AllowList;
use crate::identity::PeerIdentity;

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
    /// The certificate was accepted once and no longer is; the connection is ending.
    #[error("client certificate is no longer trusted")]
    Withdrawn,
}

impl PolicyRefusal {
    /// The status for a gRPC caller.
    #[must_use]
    pub fn to_status(self) -> Status {
        match self {
            Self::Unauthenticated(_) | Self::Withdrawn => Status::unauthenticated(self.to_string()),
            Self::NotAllowed => Status::permission_denied(self.to_string()),
        }
    }

    fn http_status(self) -> StatusCode {
        match self {
            Self::Unauthenticated(_) | Self::Withdrawn => StatusCode::UNAUTHORIZED,
            Self::NotAllowed => StatusCode::FORBIDDEN,
        }
    }
}

/// The response to a refused call: for gRPC of any kind a trailers-only response, otherwise a bare HTTP status.
pub(crate) fn respond<B: Default>(
    refusal: PolicyRefusal,
    content_type: Option<&HeaderValue>,
) -> Response<B> {
    let is_grpc = content_type.is_some_and(|v| v.as_bytes().starts_with(b"application/grpc"));
    if is_grpc {
        return refusal.to_status().into_http();
    }
    let mut response = Response::new(B::default());
    *response.status_mut() = refusal.http_status();
    let zero = HeaderValue::from_static("0");
    response.headers_mut().insert(header::CONTENT_LENGTH, zero);
    response
}

/// Logs a refusal with everything that the caller is not told.
pub(crate) fn log_refusal(
    refusal: PolicyRefusal,
    peer: Option<&PeerIdentity>,
    remote: &str,
    path: &str,
    list: &AllowList,
) {
    let identity = peer.and_then(PeerIdentity::certificate);
    tracing::warn!(
        audit = true,
        remote,
        path,
        presented_cn = identity.and_then(|i| i.common_name()).unwrap_or_default(),
        presented_dns = identity.map(|i| i.dns_names().join(", ")).unwrap_or_default(),
        presented_uri = identity.map(|i| i.uri_names().join(", ")).unwrap_or_default(),
        allowed = %list,
        reason = %refusal,
        "call refused"
    );
}
