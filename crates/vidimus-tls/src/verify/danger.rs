//! The verifier behind [`crate::danger::InsecureServerVerification`]: takes any server certificate.

use std::sync::Arc;

use rustls::Error;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::path::decode;
use super::{HandshakeSlot, Purpose, VerifiedChain, handshake_signatures};

/// Accepts whatever certificate the server has, as long as it holds that certificate's key.
#[derive(Debug)]
pub(crate) struct UnverifiedServer {
    pub(crate) slot: Arc<HandshakeSlot>,
}

impl ServerCertVerifier for UnverifiedServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let outcome = decode(end_entity, 1).map(|certificate| {
            VerifiedChain::without_path(end_entity, intermediates, &certificate, Purpose::Server)
        });
        self.slot.keep(outcome)?;
        Ok(ServerCertVerified::assertion())
    }

    handshake_signatures!();
}
