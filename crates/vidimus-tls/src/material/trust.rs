//! The roots that peers are verified against, and the revocation lists beside them.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::DistinguishedName;
use rustls_pki_types::{CertificateDer, TrustAnchor};
use serde::Serialize;
use vidimus_x509::cert::Certificate;
use vidimus_x509::pem;

use super::{Issuer, Revocation, RevocationListInfo, RevocationOptions, TrustError, memory};
use crate::clock::serialize_time;
use crate::identity::Fingerprint;
use crate::verify::PathFault;
use crate::verify::facts::{self, PathConstraints};

/// A set of roots with its revocation lists, checked as a whole. Immutable.
#[derive(Debug)]
pub struct Trust {
    roots: Vec<Root>,
    anchors: Vec<TrustAnchor<'static>>,
    hints: Vec<DistinguishedName>,
    revocation: Revocation,
}

/// One certificate of a trust set.
#[derive(Clone, Debug, Serialize)]
pub struct Root {
    subject: String,
    #[serde(serialize_with = "serialize_time")]
    not_before: SystemTime,
    #[serde(serialize_with = "serialize_time")]
    not_after: SystemTime,
    fingerprint: Fingerprint,
    authority: bool,
    #[serde(skip)]
    fault: Option<&'static str>,
    path_len: Option<u32>,
    #[serde(skip)]
    constraints: PathConstraints,
    #[serde(skip)]
    issuer: Arc<Issuer>,
}

impl Root {
    /// The subject as text, for people.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The first instant at which the root is valid.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// The last instant at which the root is valid.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// The SHA-256 of the root's DER.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether it is a CA's: basicConstraints CA:TRUE and, where there is a key usage, keyCertSign. Others verify nobody.
    #[must_use]
    pub fn is_authority(&self) -> bool {
        self.authority
    }

    /// Why it verifies nobody at any time, in words for people: it isn't a CA's, lacks keyCertSign, has no name, or has a
    /// critical extension that nothing here applies.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    /// How many intermediates may stand below it, if it limits them.
    #[must_use]
    pub fn path_len(&self) -> Option<u32> {
        self.path_len
    }

    /// What it says about the names below it.
    pub(crate) fn constraints(&self) -> &PathConstraints {
        &self.constraints
    }

    /// The root as the signer of revocation lists.
    pub(crate) fn issuer(&self) -> &Arc<Issuer> {
        &self.issuer
    }

    /// Whether `now` is within its dates.
    #[must_use]
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.not_before <= now && now <= self.not_after
    }
}

impl Trust {
    /// Checks roots given as PEM.
    ///
    /// # Errors
    ///
    /// What is wrong, with `memory` in place of a file name.
    pub fn from_pem(roots: &[u8], now: SystemTime) -> Result<Self, TrustError> {
        Self::parse(roots, memory(), now)
    }

    /// A set that verifies nobody, for listeners whose callers are pinned instead.
    #[must_use]
    pub fn nobody() -> Self {
        Self {
            roots: Vec::new(),
            anchors: Vec::new(),
            hints: Vec::new(),
            revocation: Revocation::default(),
        }
    }

    /// The same roots with revocation lists, PEM or one in DER. Their signatures are checked under the roots and under
    /// `chain`, such as the process's own; a list of another CA waits for a peer that presents it. None may be of the future.
    ///
    /// # Errors
    ///
    /// What is wrong with the lists, with `memory` in place of a file name.
    pub fn with_revocation(
        self,
        lists: &[u8],
        options: RevocationOptions,
        chain: &[CertificateDer<'static>],
        now: SystemTime,
    ) -> Result<Self, TrustError> {
        self.with_lists(lists, memory(), options.decided(true), chain, now)
    }

    pub(crate) fn with_lists(
        self,
        lists: &[u8],
        path: &Path,
        options: RevocationOptions,
        chain: &[CertificateDer<'static>],
        now: SystemTime,
    ) -> Result<Self, TrustError> {
        let known = self.authorities(chain);
        let revocation = Revocation::parse(lists, path, options, &known, now)?;
        Ok(Self { revocation, ..self })
    }

    pub(crate) fn without_lists(self, options: RevocationOptions) -> Self {
        Self {
            revocation: Revocation::none(options),
            ..self
        }
    }

    /// This set in the place of `previous`: a list that is gone stays in use, unless the root above it is gone too, and none
    /// goes back in time.
    pub(crate) fn after(self, previous: &Self, chain: &[CertificateDer<'static>]) -> Self {
        let present = self.authorities(chain);
        let left = previous.roots.iter();
        let left = left.filter(|root| self.find(root.fingerprint).is_none());
        let left: Vec<_> = left.map(|root| Arc::clone(&root.issuer)).collect();
        Self {
            revocation: self.revocation.after(&previous.revocation, &present, &left),
            ..self
        }
    }

    /// The CAs among the roots and in `chain`.
    fn authorities(&self, chain: &[CertificateDer<'static>]) -> Vec<Arc<Issuer>> {
        let roots = self.roots.iter().map(|root| Arc::clone(&root.issuer));
        let of_chain = chain
            .iter()
            .filter_map(|der| Certificate::parse(der).ok())
            .filter(Certificate::is_ca)
            .map(|certificate| Arc::new(Issuer::of(&certificate)));
        roots.chain(of_chain).collect()
    }

    pub(crate) fn parse(bytes: &[u8], path: &Path, now: SystemTime) -> Result<Self, TrustError> {
        let ders = pem::certificates(bytes).map_err(|source| TrustError::Pem {
            path: path.to_path_buf(),
            source,
        })?;
        if ders.is_empty() {
            return Err(TrustError::NoCertificate {
                path: path.to_path_buf(),
            });
        }
        let mut trust = Self::nobody();
        for (index, der) in ders.iter().enumerate() {
            trust.add(der, path, index.saturating_add(1), now)?;
        }
        if !trust.roots.iter().any(Root::is_authority) {
            return Err(TrustError::NoAuthority {
                path: path.to_path_buf(),
            });
        }
        Ok(trust)
    }

    fn add(
        &mut self,
        der: &[u8],
        path: &Path,
        position: usize,
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let certificate = Certificate::parse(der).map_err(|source| TrustError::CertificateDer {
            path: path.to_path_buf(),
            position,
            source,
        })?;
        let fingerprint = Fingerprint::of(der);
        if self.find(fingerprint).is_some() {
            return Ok(());
        }
        let der = CertificateDer::from(der);
        let anchor =
            webpki::anchor_from_trusted_cert(&der).map_err(|error| TrustError::Anchor {
                path: path.to_path_buf(),
                position,
                source: PathFault(error),
            })?;
        // Also of a root that verifies nobody: it is what says why a peer is refused.
        self.anchors.push(anchor.to_owned());
        let fault = facts::root_fault(&certificate);
        let name = DistinguishedName::in_sequence(anchor.subject.as_ref());
        let is_known = self.hints.iter().any(|hint| hint.as_ref() == name.as_ref());
        // Peers must not be asked for a certificate that would be refused.
        if fault.is_none() && now <= certificate.not_after() && !is_known {
            self.hints.push(name);
        }
        self.roots.push(Root {
            subject: certificate.subject_text().to_owned(),
            not_before: certificate.not_before(),
            not_after: certificate.not_after(),
            fingerprint,
            authority: certificate.is_ca() && facts::may_sign_certificates(&certificate),
            fault,
            path_len: certificate.path_len(),
            issuer: Arc::new(Issuer::of(&certificate)),
            constraints: PathConstraints::of(&certificate),
        });
        Ok(())
    }

    /// What is odd about the set, which is taken into use, but no reason to refuse it. That a root has expired is an alarm.
    pub(crate) fn warn(&self, now: SystemTime) {
        for root in &self.roots {
            let reason = match root.fault {
                Some(fault) => fault,
                None if now < root.not_before => "is not valid yet",
                None => continue,
            };
            tracing::warn!(
                subject = root.subject,
                not_before = crate::clock::rfc3339(root.not_before),
                not_after = crate::clock::rfc3339(root.not_after),
                "root certificate verifies nobody now: {reason}"
            );
        }
    }

    /// The roots, in the order of the file.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The root with this fingerprint.
    #[must_use]
    pub fn find(&self, fingerprint: Fingerprint) -> Option<&Root> {
        self.roots
            .iter()
            .find(|root| root.fingerprint == fingerprint)
    }

    /// The same set without one of its roots, to see what would become of peers if it left.
    #[must_use]
    pub fn without(&self, root: Fingerprint) -> Self {
        let stays: Vec<bool> = self
            .roots
            .iter()
            .map(|own| own.fingerprint != root)
            .collect();
        fn kept<T: Clone>(all: &[T], stays: &[bool]) -> Vec<T> {
            let both = all.iter().zip(stays);
            both.filter(|(_, stays)| **stays)
                .map(|(one, _)| one.clone())
                .collect()
        }
        Self {
            roots: kept(&self.roots, &stays),
            anchors: kept(&self.anchors, &stays),
            hints: self.hints.clone(),
            revocation: self.revocation.clone(),
        }
    }

    /// Whether the other set has the same roots in the same order, and the same revocation lists.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let of =
            |set: &Self| -> Vec<Fingerprint> { set.roots.iter().map(Root::fingerprint).collect() };
        of(self) == of(other) && self.revocation.is_same_as(&other.revocation)
    }

    /// What is asked of revocation lists.
    #[must_use]
    pub fn revocation_options(&self) -> &RevocationOptions {
        self.revocation.options()
    }

    /// The revocation lists in use.
    #[must_use]
    pub fn revocation_lists(&self) -> Vec<RevocationListInfo> {
        self.revocation.infos()
    }

    pub(crate) fn revocation(&self) -> &Revocation {
        &self.revocation
    }

    pub(crate) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// The root that this anchor of [`Self::anchors`] was made from.
    pub(crate) fn root_of(&self, anchor: &TrustAnchor<'_>) -> Option<&Root> {
        let index = self.anchors.iter().position(|own| {
            std::ptr::addr_eq(std::ptr::from_ref(own), std::ptr::from_ref(anchor))
        })?;
        self.roots.get(index)
    }

    pub(crate) fn hints(&self) -> &[DistinguishedName] {
        &self.hints
    }
}
