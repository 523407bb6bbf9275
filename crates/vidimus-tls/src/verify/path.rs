//! Building a path from a peer's certificate to a root, with the checks that webpki leaves out.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use vidimus_x509::cert::Certificate;
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};

use super::Refusal;
use super::approve::Approved;
use super::explain::{explain, unknown_issuer};
use super::facts;
use super::revocation::{self, Link};
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
    /// How far up revocation was asked about.
    depth: usize,
    links: Arc<[Link]>,
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

    /// Likewise, but what the peer presented is judged as of its last moment if it has expired since: that it expired is
    /// a reason of its own, with a grace of its own. A root that came later is judged as of now.
    fn judge_overlooking_expiry(&self, trust: &Trust, now: SystemTime) -> Result<Self, Refusal> {
        let presented_at = since_epoch(now.min(self.earliest_not_after));
        match self.presented.split_first() {
            Some((leaf, rest)) => verify_as_of(trust, leaf, rest, presented_at, now, self.purpose),
            None => Err(unreadable(0, "nothing was presented")),
        }
    }

    /// Whether the chain still holds under trust that has changed: `None` along the path that it was accepted by, or the
    /// chain along another one.
    ///
    /// As long as the root stays, that nothing current is known of revocation ends nothing that was accepted while it
    /// was known: new connections are refused then, and a list that revokes ends the old ones. Nor does it matter here
    /// that the peer's certificate, or one above it, has expired since.
    ///
    /// # Errors
    ///
    /// Why it doesn't hold along any path.
    pub(crate) fn judge_again(
        &self,
        trust: &Trust,
        now: SystemTime,
    ) -> Result<Option<Self>, Refusal> {
        let root = self.anchor.and_then(|anchor| trust.find(anchor));
        if root.is_some_and(Root::is_authority) && self.is_not_listed(trust) {
            return Ok(None);
        }
        self.judge_overlooking_expiry(trust, now).map(Some)
    }

    /// Whether everything that is asked about was looked up when the chain was accepted, and is known not to be listed now.
    fn is_not_listed(&self, trust: &Trust) -> bool {
        let lists = trust.revocation();
        let depth = revocation::depth(lists.options().check());
        let is_clear = |link: &Link| {
            let der = self.presented.get(link.position);
            let certificate = der.and_then(|der| decode(der, link.position).ok());
            certificate.is_some_and(|certificate| {
                revocation::check_known(lists, &certificate, &link.issuer).is_ok()
            })
        };
        depth == 0 || (depth <= self.depth && self.links.iter().all(is_clear))
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
            depth: 0,
            links: Arc::default(),
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
    let roots_at = to_system_time(now);
    verify_as_of(trust, end_entity, intermediates, now, roots_at, purpose)
}

/// Likewise, with a time for what the peer presented and another for roots and revocation lists.
fn verify_as_of(
    trust: &Trust,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    presented_at: UnixTime,
    now: SystemTime,
    purpose: Purpose,
) -> Result<VerifiedChain, Refusal> {
    let certificate = decode(end_entity, 1)?;
    let parsed = EndEntityCert::try_from(end_entity).map_err(|error| unreadable(1, error))?;
    // The hook can only return webpki's errors; ours is kept beside it and wins, since only a path that was otherwise
    // complete gets there.
    let outcome = RefCell::new(None);
    let check = |path: &VerifiedPath<'_>| {
        let approved = Approved::check(trust, path, &certificate, now);
        let answer = match &approved {
            Ok(_) => Ok(()),
            Err(_) => Err(webpki::Error::UnknownIssuer),
        };
        let mut outcome = outcome.borrow_mut();
        // That a certificate is revoked says more than what is wrong with another path.
        if approved.is_ok() || !matches!(*outcome, Some(Err(Refusal::Revoked { .. }))) {
            *outcome = Some(approved);
        }
        answer
    };
    let built = parsed.verify_for_usage(
        config::provider().signature_verification_algorithms.all,
        trust.anchors(),
        intermediates,
        presented_at,
        purpose.key_usage(),
        None,
        Some(&check),
    );
    let approved = match (built, outcome.take()) {
        (Ok(_), Some(Ok(approved))) => approved,
        (_, Some(Err(refusal))) => return Err(refusal),
        (Err(error), _) => {
            let at = to_system_time(presented_at);
            return Err(explain(error, &certificate, intermediates, at, purpose));
        }
        // webpki asks the hook about every path that it returns.
        (Ok(_), None) => return Err(unknown_issuer(&certificate)),
    };
    if let Some(fault) = facts::handshake_fault(&certificate) {
        return Err(Refusal::KeyUsage {
            subject: certificate.subject_text().to_owned(),
            fault,
        });
    }
    let presented = owned(end_entity, intermediates);
    let root = approved.root;
    Ok(VerifiedChain {
        links: approved.links(trust, &certificate, &presented),
        purpose,
        identity: Arc::new(
            CertificateIdentity::of(end_entity, &certificate)
                .under(root.fingerprint(), approved.constraints()),
        ),
        anchor: Some(root.fingerprint()),
        anchor_subject: Some(root.subject().to_owned()),
        earliest_not_after: approved.earliest_not_after(&certificate),
        depth: revocation::depth(trust.revocation().options().check()),
        presented,
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

fn owned(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Arc<[CertificateDer<'static>]> {
    std::iter::once(end_entity)
        .chain(intermediates)
        .map(|der| der.clone().into_owned())
        .collect()
}

pub(crate) fn since_epoch(time: SystemTime) -> UnixTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    UnixTime::since_unix_epoch(since)
}
