//! Client certificates, verified against the roots of one material.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{HandshakeSlot, Purpose, no_tls12, path_to_root};
use crate::config;
use crate::material::Trust;

/// The verifier of one connection.
#[derive(Debug)]
pub(crate) struct RootClientVerifier {
    pub(crate) trust: Arc<Trust>,
    pub(crate) slot: Arc<HandshakeSlot>,
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
        self.slot.keep(outcome)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        config::verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        config::signature_schemes()
    }
}
