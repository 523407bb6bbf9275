//! Client certificates, verified against the roots of one material.

use std::sync::Arc;

use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DistinguishedName, Error};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{HandshakeSlot, Purpose, handshake_signatures, path_to_root};
use crate::material::Trust;

/// The verifier of all connections of one material.
#[derive(Debug)]
pub(crate) struct RootClientVerifier {
    pub(crate) trust: Arc<Trust>,
}

impl ClientCertVerifier for RootClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.trust.hints()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let outcome = path_to_root(&self.trust, end_entity, intermediates, now, Purpose::Client);
        HandshakeSlot::keep_here(outcome)?;
        Ok(ClientCertVerified::assertion())
    }

    handshake_signatures!();
}
