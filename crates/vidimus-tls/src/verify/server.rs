//! Server certificates, verified against the roots of one material and the name that was connected to.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{HandshakeSlot, Purpose, Refusal, VerifiedChain, no_tls12, path_to_root};
use crate::config;
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
