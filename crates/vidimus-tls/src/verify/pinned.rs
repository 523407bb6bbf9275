//! Client certificates known one by one: the SHA-256 of the certificate decides, not who issued it.
//!
//! A pin is never a trust anchor, so the key of a pinned certificate cannot issue others that would be let in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DistinguishedName, Error};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::path::decode;
use super::{HandshakeSlot, Purpose, Refusal, VerifiedChain, facts, handshake_signatures};
use crate::clock::to_system_time;
use crate::identity::Fingerprint;

/// A set of pinned client certificates; still checks their dates, their usage and the handshake's signature.
///
/// Clones share the set, so that [`Self::replace`] takes effect on the next handshake.
#[derive(Clone, Debug)]
pub struct PinnedClientVerifier {
    pins: Arc<ArcSwap<BTreeSet<Fingerprint>>>,
}

/// The pins as rustls asks them.
#[derive(Debug)]
pub(crate) struct PinnedConnection(pub(crate) PinnedClientVerifier);

impl PinnedClientVerifier {
    /// Accepts the certificates with these SHA-256 digests of their DER. An empty set accepts nobody.
    #[must_use]
    pub fn new(pins: BTreeSet<[u8; 32]>) -> Self {
        Self {
            pins: Arc::new(ArcSwap::from_pointee(fingerprints(pins))),
        }
    }

    /// Puts another set in place of the present one, for every handshake from now on.
    pub fn replace(&self, pins: BTreeSet<[u8; 32]>) {
        self.pins.store(Arc::new(fingerprints(pins)));
    }

    /// Whether a certificate is in the set now.
    #[must_use]
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.pins.load().contains(&fingerprint)
    }

    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: SystemTime,
    ) -> Result<VerifiedChain, Refusal> {
        let certificate = decode(end_entity, 1)?;
        let subject = || certificate.subject_text().to_owned();
        let fingerprint = Fingerprint::of(end_entity);
        if !self.contains(fingerprint) {
            return Err(Refusal::NotPinned {
                subject: subject(),
                fingerprint,
            });
        }
        let (not_before, not_after) = (certificate.not_before(), certificate.not_after());
        if now < not_before {
            return Err(Refusal::NotYetValid {
                subject: subject(),
                now,
                not_before,
                not_after,
            });
        }
        if now > not_after {
            return Err(Refusal::Expired {
                subject: subject(),
                now,
                not_before,
                not_after,
            });
        }
        if let Some(listed) = facts::extended_key_usages(&certificate)
            && !listed.iter().any(|usage| usage == "clientAuth")
        {
            return Err(Refusal::Purpose {
                subject: subject(),
                needed: "clientAuth",
                found: listed.join(", "),
            });
        }
        Ok(VerifiedChain::without_path(
            end_entity,
            intermediates,
            &certificate,
            Purpose::Client,
        ))
    }
}

fn fingerprints(pins: BTreeSet<[u8; 32]>) -> BTreeSet<Fingerprint> {
    pins.into_iter().map(Fingerprint::from_bytes).collect()
}

impl ClientCertVerifier for PinnedConnection {
    /// None: a pinned certificate's issuer is nobody's business.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let outcome = self
            .0
            .verify(end_entity, intermediates, to_system_time(now));
        HandshakeSlot::keep_here(outcome)?;
        Ok(ClientCertVerified::assertion())
    }

    handshake_signatures!();
}
