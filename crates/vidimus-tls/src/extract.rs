//! Who calls, as arguments of axum's handlers.

use axum_core::extract::FromRequestParts;
use http::StatusCode;
use http::request::Parts;

use crate::identity::PeerIdentity;
use crate::server::RemoteAddr;

/// The caller. A request that no [`crate::server::Server`] has let in is answered with 401.
impl<S: Sync> FromRequestParts<S> for PeerIdentity {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<Self>().cloned();
        peer.ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// The caller's address. A request that didn't come over TCP is answered with 500.
impl<S: Sync> FromRequestParts<S> for RemoteAddr {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let address = parts.extensions.get::<Self>().copied();
        address.ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V6. A handler that asks for its caller is never run for nobody.
    #[tokio::test]
    async fn a_request_that_nobody_let_in_is_unauthorized() {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        let nobody = PeerIdentity::from_request_parts(&mut parts, &()).await;
        assert_eq!(nobody.err(), Some(StatusCode::UNAUTHORIZED));
        parts.extensions.insert(PeerIdentity::Unauthenticated);
        let somebody = PeerIdentity::from_request_parts(&mut parts, &()).await;
        assert!(somebody.is_ok());
    }
}
