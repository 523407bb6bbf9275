//! The one place where rustls is configured.
//!
//! TLS 1.3 only, the hybrid X25519MLKEM768 first, no resumption of any kind: a resumed session never asks the verifier
//! again (CVE-2025-68121), so a certificate that was withdrawn would go on working.

use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme, client, version,
};
use rustls_pki_types::CertificateDer;

use crate::clock::Clock;
use crate::danger::InsecureServerVerification;
use crate::material::Material;
use crate::verify::{
    HandshakeSlot, PinnedClientVerifier, RootClientVerifier, RootServerVerifier, UnverifiedServer,
};

/// HTTP/2 in ALPN (RFC 9113 §3.2).
pub const ALPN_H2: &[u8] = b"h2";
/// HTTP/1.1 in ALPN (RFC 7301 §6).
pub const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What a listener speaks, and so what it names in ALPN (RFC 7301).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/2 alone, as gRPC needs it. A client that doesn't offer `h2` is refused with `no_application_protocol`.
    #[default]
    H2,
    /// HTTP/2, else HTTP/1.1, which is also what a client that uses no ALPN gets. One that offers neither is refused.
    H2AndHttp1,
    /// Something of the server's own: no ALPN, and whatever a client offers there is not looked at.
    None,
}

/// What a client and a listener agreed on in ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, or whatever a client without ALPN speaks where HTTP/1.1 would do.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocols {
    /// For messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::H2 => "h2",
            Self::H2AndHttp1 => "h2 or http/1.1",
            Self::None => "none",
        }
    }

    fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::H2 => vec![ALPN_H2.to_vec()],
            Self::H2AndHttp1 => vec![ALPN_H2.to_vec(), ALPN_HTTP1.to_vec()],
            Self::None => Vec::new(),
        }
    }

    /// Whether a client may go on that offers this. rustls refuses foreign protocols, but not a client without any.
    pub(crate) fn accept(self, offered: Option<&[&[u8]]>) -> bool {
        match (self, offered) {
            (Self::H2, None) => false,
            (Self::H2, Some(offered)) => offered.contains(&ALPN_H2),
            (Self::H2AndHttp1, Some(offered)) => {
                offered.contains(&ALPN_H2) || offered.contains(&ALPN_HTTP1)
            }
            (Self::H2AndHttp1, None) | (Self::None, _) => true,
        }
    }

    /// What is spoken after a handshake that agreed on this; the outer `None` if it must not go on.
    pub(crate) fn agreed(self, alpn: Option<&[u8]>) -> Option<Option<Protocol>> {
        match (self, alpn) {
            (Self::H2 | Self::H2AndHttp1, Some(ALPN_H2)) => Some(Some(Protocol::Http2)),
            (Self::H2AndHttp1, Some(ALPN_HTTP1) | None) => Some(Some(Protocol::Http1)),
            (Self::None, None) => Some(None),
            (Self::H2 | Self::H2AndHttp1 | Self::None, _) => None,
        }
    }
}

/// The crypto provider of this crate: aws-lc-rs with its post-quantum hybrid first. It is passed to rustls explicitly; the
/// process-wide default is never touched.
pub fn provider() -> &'static Arc<CryptoProvider> {
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

/// How a client decides about the server's certificate.
#[derive(Clone, Copy, Debug)]
pub enum ServerVerification {
    /// It must be under the material's roots, for `serverAuth`, and have the name that was connected to.
    Roots,
    /// Any certificate will do.
    Insecure(InsecureServerVerification),
}

/// Whether a client shows the certificate that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// It does.
    Presented,
    /// It answers a server's request with none, to see what the server makes of that.
    Withheld,
}

/// The configuration of one server connection, and where its peer's identity will be found.
#[derive(Clone, Debug)]
pub struct ServerHandshake {
    /// For the acceptor.
    pub config: Arc<ServerConfig>,
    /// Filled by the verifier during the handshake.
    pub slot: Arc<HandshakeSlot>,
}

/// The configuration of one client connection, and where its peer's identity will be found.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    /// For the connector.
    pub config: Arc<ClientConfig>,
    /// Filled by the verifier during the handshake.
    pub slot: Arc<HandshakeSlot>,
}

/// Makes the configuration for one connection to accept, from the material of this moment.
///
/// # Errors
///
/// None for a material that passed its checks; rustls' own error if it finds an inconsistency.
pub fn server_config(
    material: &Material,
    clients: &ClientAuth,
    protocols: Protocols,
    clock: &Clock,
) -> Result<ServerHandshake, Error> {
    let slot = Arc::new(HandshakeSlot::default());
    let verifier: Arc<dyn ClientCertVerifier> = match clients {
        ClientAuth::Roots => Arc::new(RootClientVerifier {
            trust: Arc::clone(material.trust()),
            slot: Arc::clone(&slot),
        }),
        ClientAuth::Pinned(pinned) => Arc::new(pinned.with_slot(Arc::clone(&slot))),
    };
    let certified = Arc::clone(material.identity().certified());
    let mut config =
        ServerConfig::builder_with_details(Arc::clone(provider()), Arc::new(clock.clone()))
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = protocols.alpn();
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    config.send_half_rtt_data = false;
    Ok(ServerHandshake {
        config: Arc::new(config),
        slot,
    })
}

/// Makes the configuration for one connection to open, from the material of this moment.
///
/// # Errors
///
/// None for a material that passed its checks; rustls' own error if it finds an inconsistency.
pub fn client_config(
    material: &Material,
    verification: ServerVerification,
    certificate: ClientCertificate,
    clock: &Clock,
) -> Result<ClientHandshake, Error> {
    let slot = Arc::new(HandshakeSlot::default());
    let verifier: Arc<dyn client::danger::ServerCertVerifier> = match verification {
        ServerVerification::Roots => Arc::new(RootServerVerifier {
            trust: Arc::clone(material.trust()),
            slot: Arc::clone(&slot),
        }),
        ServerVerification::Insecure(_) => Arc::new(UnverifiedServer {
            slot: Arc::clone(&slot),
        }),
    };
    let builder =
        ClientConfig::builder_with_details(Arc::clone(provider()), Arc::new(clock.clone()))
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
    let mut config = match certificate {
        ClientCertificate::Presented => {
            let certified = Arc::clone(material.identity().certified());
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
        }
        ClientCertificate::Withheld => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN_H2.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    Ok(ClientHandshake {
        config: Arc::new(config),
        slot,
    })
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
