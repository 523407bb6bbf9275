//! The verifier behind [`crate::danger::InsecureServerVerification`]: takes any server certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::path::decode;
use super::{HandshakeSlot, Purpose, VerifiedChain, no_tls12};
use crate::config;

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
