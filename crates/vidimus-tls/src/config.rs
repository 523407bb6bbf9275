//! The one place where rustls is configured.
//!
//! TLS 1.3 only, the hybrid X25519MLKEM768 first, no resumption of any kind: a resumed session never asks the verifier
//! again (CVE-2025-68121), so a certificate that was withdrawn would go on working.

#[cfg(feature = "tonic")]
mod client;
mod protocols;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::{DigitallySignedStruct, Error, ServerConfig, SignatureScheme, version};
use rustls_pki_types::CertificateDer;

// For the project's own tests; no promise is made about it.
#[cfg(feature = "tonic")]
#[doc(hidden)]
pub use client::{ClientCertificate, ClientHandshake, ServerVerification, client_config};
#[cfg(feature = "tonic")]
pub(crate) use protocols::ALPN_H2;
pub use protocols::{Protocol, Protocols};

use crate::clock::{Clock, HandshakeClock};
use crate::material::Material;
use crate::verify::{PinnedClientVerifier, PinnedConnection, RootClientVerifier};

/// The crypto provider of this crate: aws-lc-rs with its post-quantum hybrid first, and with the feature `fips` only what
/// its validated module covers. It is passed to rustls explicitly; the process-wide default is never touched.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(aws_lc_rs::default_provider()))
}

/// How a server decides about client certificates. There is always one, and it is always verified.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// Any certificate under the material's roots, for `clientAuth`.
    Roots,
    /// One of these certificates.
    Pinned(PinnedClientVerifier),
}

/// Makes the configuration for connections to accept with this material. Its verifier leaves the peer's chain in the
/// [`HandshakeSlot`](crate::verify::HandshakeSlot) of the handshake that is going on.
///
/// # Errors
///
/// None for a material that passed its checks; rustls' own error if it finds an inconsistency.
pub(crate) fn server_config(
    material: &Material,
    clients: &ClientAuth,
    protocols: Protocols,
    clock: &Clock,
) -> Result<ServerConfig, Error> {
    let verifier: Arc<dyn ClientCertVerifier> = match clients {
        ClientAuth::Roots => Arc::new(RootClientVerifier {
            trust: Arc::clone(material.trust()),
        }),
        ClientAuth::Pinned(pins) => Arc::new(PinnedConnection(pins.clone())),
    };
    let certified = Arc::clone(material.identity().certified());
    let mut config = ServerConfig::builder_with_details(
        Arc::clone(provider()),
        Arc::new(HandshakeClock(clock.clone())),
    )
    .with_protocol_versions(&[&version::TLS13])?
    .with_client_cert_verifier(verifier)
    .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = protocols.alpn();
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    config.send_half_rtt_data = false;
    Ok(config)
}

/// Checks that the peer holds the key of the certificate it shows (RFC 8446 §4.4.3).
pub(crate) fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider().signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signed, algorithms)
}

pub(crate) fn signature_schemes() -> Vec<SignatureScheme> {
    provider()
        .signature_verification_algorithms
        .supported_schemes()
}
