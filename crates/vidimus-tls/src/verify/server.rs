//! Server certificates, verified against the roots of one material and the name that was connected to.

use std::sync::Arc;

use rustls::Error;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{HandshakeSlot, Purpose, Refusal, VerifiedChain, handshake_signatures, path_to_root};
use crate::material::Trust;

/// The verifier of one connection.
#[derive(Debug)]
pub(crate) struct RootServerVerifier {
    pub(crate) trust: Arc<Trust>,
    pub(crate) slot: Arc<HandshakeSlot>,
}

impl RootServerVerifier {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<VerifiedChain, Refusal> {
        let chain = path_to_root(&self.trust, end_entity, intermediates, now, Purpose::Server)?;
        super::name(end_entity, chain.identity(), name)?;
        Ok(chain)
    }
}

impl ServerCertVerifier for RootServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let outcome = self.verify(end_entity, intermediates, server_name, now);
        self.slot.keep(outcome)?;
        Ok(ServerCertVerified::assertion())
    }

    handshake_signatures!();
}
