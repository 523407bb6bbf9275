//! Building a path from a peer's certificate to a root, with the checks that webpki leaves out.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use vidimus_x509::cert::Certificate;
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};

use super::Refusal;
use super::explain::{explain, not_an_issuer, unknown_issuer};
use super::facts::{self, PathConstraints};
use crate::clock::to_system_time;
use crate::config;
use crate::identity::{CertificateIdentity, Fingerprint};
use crate::material::{Root, Trust};

/// What the verified peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It connects to us: `clientAuth`.
    Client,
    /// We connect to it: `serverAuth`.
    Server,
}

impl Purpose {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Client => "clientAuth",
            Self::Server => "serverAuth",
        }
    }

    fn key_usage(self) -> KeyUsage {
        match self {
            Self::Client => KeyUsage::client_auth(),
            Self::Server => KeyUsage::server_auth(),
        }
    }
}

/// A peer's chain that was accepted, with what it was accepted by. Only verification makes one.
#[derive(Clone, Debug)]
pub struct VerifiedChain {
    presented: Arc<[CertificateDer<'static>]>,
    purpose: Purpose,
    identity: Arc<CertificateIdentity>,
    anchor: Option<Fingerprint>,
    anchor_subject: Option<String>,
    earliest_not_after: SystemTime,
}

impl VerifiedChain {
    /// The certificates as the peer sent them, its own first.
    #[must_use]
    pub fn presented(&self) -> &[CertificateDer<'static>] {
        &self.presented
    }

    /// The names in the peer's certificate.
    #[must_use]
    pub fn identity(&self) -> &Arc<CertificateIdentity> {
        &self.identity
    }

    /// The root that the path ends at; `None` if the certificate was pinned or its path not verified.
    #[must_use]
    pub fn anchor(&self) -> Option<Fingerprint> {
        self.anchor
    }

    /// That root's subject as text, for people.
    #[must_use]
    pub fn anchor_subject(&self) -> Option<&str> {
        self.anchor_subject.as_deref()
    }

    /// The first instant after which one of the path's certificates has expired.
    #[must_use]
    pub fn earliest_not_after(&self) -> SystemTime {
        self.earliest_not_after
    }

    /// Verifies the same presented chain again, against the trust and at the time of now, along any path.
    ///
    /// # Errors
    ///
    /// Why it wouldn't be accepted today.
    pub fn judge(&self, trust: &Trust, now: SystemTime) -> Result<Self, Refusal> {
        let now = since_epoch(now);
        match self.presented.split_first() {
            Some((leaf, rest)) => verify(trust, leaf, rest, now, self.purpose),
            None => Err(unreadable(0, "nothing was presented")),
        }
    }

    /// A chain that was accepted for another reason than a path to a root.
    pub(crate) fn without_path(
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        certificate: &Certificate,
        purpose: Purpose,
    ) -> Self {
        Self {
            presented: owned(end_entity, intermediates),
            purpose,
            identity: Arc::new(CertificateIdentity::of(end_entity, certificate)),
            anchor: None,
            anchor_subject: None,
            earliest_not_after: certificate.not_after(),
        }
    }
}

/// Decodes the certificate at `position` (from 1) of what the peer sent.
pub(crate) fn decode(der: &CertificateDer<'_>, position: usize) -> Result<Certificate, Refusal> {
    Certificate::parse(der).map_err(|error| unreadable(position, error))
}

pub(super) fn unreadable(position: usize, reason: impl ToString) -> Refusal {
    Refusal::Unreadable {
        position,
        reason: reason.to_string(),
    }
}

/// Verifies a presented chain against `trust` for what the peer does.
pub(crate) fn verify(
    trust: &Trust,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
    purpose: Purpose,
) -> Result<VerifiedChain, Refusal> {
    let certificate = decode(end_entity, 1)?;
    let parsed = EndEntityCert::try_from(end_entity).map_err(|error| unreadable(1, error))?;
    // The hook can only return webpki's errors; ours is kept beside it and wins, since only a path that was otherwise
    // complete gets there.
    let last_refusal = RefCell::new(None);
    let check = |path: &VerifiedPath<'_>| {
        check_path(trust, path, to_system_time(now)).map_err(|refusal| {
            *last_refusal.borrow_mut() = Some(refusal);
            webpki::Error::UnknownIssuer
        })
    };
    let built = parsed.verify_for_usage(
        config::provider().signature_verification_algorithms.all,
        trust.anchors(),
        intermediates,
        now,
        purpose.key_usage(),
        None,
        Some(&check),
    );
    let path = match built {
        Ok(path) => path,
        Err(error) => {
            let kept = last_refusal.take();
            return Err(kept.unwrap_or_else(|| {
                explain(
                    error,
                    &certificate,
                    intermediates,
                    to_system_time(now),
                    purpose,
                )
            }));
        }
    };
    if let Some(fault) = facts::handshake_fault(&certificate) {
        return Err(Refusal::KeyUsage {
            subject: certificate.subject_text().to_owned(),
            fault,
        });
    }
    let root = trust
        .root_of(path.anchor())
        .ok_or_else(|| unknown_issuer(&certificate))?;
    Ok(VerifiedChain {
        presented: owned(end_entity, intermediates),
        purpose,
        identity: Arc::new(
            CertificateIdentity::of(end_entity, &certificate)
                .under(root.fingerprint(), constraints(&path, root)?),
        ),
        anchor: Some(root.fingerprint()),
        anchor_subject: Some(root.subject().to_owned()),
        earliest_not_after: earliest_not_after(&certificate, &path, root),
    })
}

/// Checks that the end entity is valid for the name that was connected to; only subject alternative names count.
pub(crate) fn check_name(
    end_entity: &CertificateDer<'_>,
    identity: &CertificateIdentity,
    name: &ServerName<'_>,
) -> Result<(), Refusal> {
    let parsed = EndEntityCert::try_from(end_entity).map_err(|error| unreadable(1, error))?;
    parsed
        .verify_is_valid_for_subject_name(name)
        .map_err(|_| Refusal::Name {
            subject: identity.subject().to_owned(),
            expected: name.to_str().into_owned(),
            presented: presented_names(identity),
        })
}

fn presented_names(identity: &CertificateIdentity) -> String {
    let addresses = identity.ip_addresses().iter().map(ToString::to_string);
    let names: Vec<String> = identity
        .dns_names()
        .iter()
        .cloned()
        .chain(addresses)
        .collect();
    if names.is_empty() {
        "no DNS name and no IP address".to_owned()
    } else {
        names.join(", ")
    }
}

/// RFC 5280 §6.1.4 (k), (m) and (n) for the issuers of the path, and the same for the root, whose fields the trust
/// anchor of §6.1.1 (d) doesn't carry.
fn check_path(trust: &Trust, path: &VerifiedPath<'_>, now: SystemTime) -> Result<(), Refusal> {
    let Some(root) = trust.root_of(path.anchor()) else {
        return Err(not_an_issuer("unknown", "is not one of the trusted roots"));
    };
    if let Some(fault) = root.fault() {
        return Err(not_an_issuer(root.subject(), fault));
    }
    check_root_dates(root, now)?;
    let mut below_root: u32 = 0;
    for intermediate in path.intermediate_certificates() {
        let issuer = decode(&intermediate.der(), 2)?;
        if let Some(fault) = facts::issuer_fault(&issuer) {
            return Err(not_an_issuer(issuer.subject_text(), fault));
        }
        // Self-issued certificates don't count against the limit (RFC 5280 §6.1.4 (l)).
        if issuer.subject_der() != issuer.issuer_der() {
            below_root = below_root.saturating_add(1);
        }
    }
    if root.path_len().is_some_and(|limit| below_root > limit) {
        return Err(not_an_issuer(
            root.subject(),
            "its path length allows fewer intermediates",
        ));
    }
    Ok(())
}

fn check_root_dates(root: &Root, now: SystemTime) -> Result<(), Refusal> {
    let subject = root.subject().to_owned();
    let (not_before, not_after) = (root.not_before(), root.not_after());
    if now < not_before {
        return Err(Refusal::NotYetValid {
            subject,
            now,
            not_before,
            not_after,
        });
    }
    if now > not_after {
        return Err(Refusal::Expired {
            subject,
            now,
            not_before,
            not_after,
        });
    }
    Ok(())
}

/// What the CAs of the path say about the names below them.
fn constraints(path: &VerifiedPath<'_>, root: &Root) -> Result<PathConstraints, Refusal> {
    let mut constraints = root.constraints().clone();
    for intermediate in path.intermediate_certificates() {
        let issuer = decode(&intermediate.der(), 2)?;
        constraints = constraints.and(PathConstraints::of(&issuer));
    }
    Ok(constraints)
}

fn earliest_not_after(leaf: &Certificate, path: &VerifiedPath<'_>, root: &Root) -> SystemTime {
    let of_issuers = path
        .intermediate_certificates()
        .filter_map(|issuer| Certificate::parse(&issuer.der()).ok())
        .map(|issuer| issuer.not_after());
    of_issuers.fold(leaf.not_after().min(root.not_after()), SystemTime::min)
}

fn owned(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Arc<[CertificateDer<'static>]> {
    std::iter::once(end_entity)
        .chain(intermediates)
        .map(|der| der.clone().into_owned())
        .collect()
}

pub(super) fn since_epoch(time: SystemTime) -> UnixTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    UnixTime::since_unix_epoch(since)
}
