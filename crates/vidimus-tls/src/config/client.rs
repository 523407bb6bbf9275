//! The configuration of a channel's connections.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, Error, version};

use super::{ALPN_H2, provider};
use crate::clock::{Clock, HandshakeClock};
use crate::danger::InsecureServerVerification;
use crate::material::Material;
use crate::verify::{HandshakeSlot, RootServerVerifier, UnverifiedServer};

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

/// The configuration of one client connection, and where its peer's identity will be found.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct ClientHandshake {
    /// For the connector.
    pub config: Arc<ClientConfig>,
    /// Filled by the verifier during the handshake.
    pub slot: Arc<HandshakeSlot>,
}

/// Makes the configuration for one connection to open, from the material of this moment.
///
/// # Errors
///
/// None for a material that passed its checks; rustls' own error if it finds an inconsistency.
#[doc(hidden)]
pub fn client_config(
    material: &Material,
    verification: ServerVerification,
    certificate: ClientCertificate,
    clock: &Clock,
) -> Result<ClientHandshake, Error> {
    let slot = Arc::new(HandshakeSlot::default());
    let verifier: Arc<dyn ServerCertVerifier> = match verification {
        ServerVerification::Roots => Arc::new(RootServerVerifier {
            trust: Arc::clone(material.trust()),
            slot: Arc::clone(&slot),
        }),
        ServerVerification::Insecure(_) => Arc::new(UnverifiedServer {
            slot: Arc::clone(&slot),
        }),
    };
    let builder = ClientConfig::builder_with_details(
        Arc::clone(provider()),
        Arc::new(HandshakeClock(clock.clone())),
    )
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
