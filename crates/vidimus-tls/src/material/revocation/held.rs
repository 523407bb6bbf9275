//! A list with what is known of who signed it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use vidimus_x509::cert::Certificate;
use vidimus_x509::crl::RevocationList;

use crate::identity::Fingerprint;

/// How many keys a list remembers a verdict about. Where a CA has more than this under one name, the oldest of those that
/// haven't signed the list are forgotten.
const MAX_VERDICTS: usize = 64;

/// A CA as the signer of a list.
#[derive(Clone, Debug)]
pub(crate) struct Issuer {
    subject: String,
    name: Box<[u8]>,
    /// Who issued its certificate.
    issuer_name: Box<[u8]>,
    spki: Box<[u8]>,
    /// Tells keys apart.
    key: Fingerprint,
    key_id: Option<Box<[u8]>>,
    may_sign: bool,
}

impl Issuer {
    pub(crate) fn of(certificate: &Certificate) -> Self {
        Self {
            subject: certificate.subject_text().to_owned(),
            name: certificate.subject_der().into(),
            issuer_name: certificate.issuer_der().into(),
            spki: certificate.spki_der().into(),
            key: Fingerprint::of(certificate.spki_der()),
            key_id: certificate.subject_key_id().map(Into::into),
            may_sign: certificate.may_sign_crls(),
        }
    }

    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Whether its certificate lets its key sign lists (RFC 5280 §6.3.3 (f)).
    pub(crate) fn may_sign(&self) -> bool {
        self.may_sign
    }

    pub(super) fn key(&self) -> Fingerprint {
        self.key
    }

    /// Whether `ca` has the same key, or may have issued this one's certificate. CAs of one name are not each other's.
    fn is_under(&self, ca: &Self) -> bool {
        self.key == ca.key || (self.issuer_name != self.name && self.issuer_name == ca.name)
    }
}

/// A list, and under which keys its signature is good or bad. Each key is tried once.
#[derive(Debug)]
pub(crate) struct Held {
    list: RevocationList,
    verdicts: RwLock<Vec<(Arc<Issuer>, bool)>>,
    /// Whether the root above its signer has left the trusted ones.
    is_retired: AtomicBool,
}

impl Held {
    pub(super) fn new(list: RevocationList) -> Self {
        Self {
            list,
            verdicts: RwLock::default(),
            is_retired: AtomicBool::new(false),
        }
    }

    pub(crate) fn list(&self) -> &RevocationList {
        &self.list
    }

    /// Whether it is a list of this CA's, by name and key.
    pub(crate) fn is_signed_by(&self, issuer: &Issuer) -> bool {
        if self.list.issuer_der() != &*issuer.name {
            return false;
        }
        if let Some(verdict) = self.verdict(issuer) {
            return verdict;
        }
        let verdict = self.list.verify_signature(&issuer.spki).is_ok();
        self.remember(Arc::new(issuer.clone()), verdict);
        verdict
    }

    /// Tries the CAs of its issuer's name, so that no handshake has to.
    pub(super) fn try_all(&self, known: &[Arc<Issuer>]) {
        for issuer in known {
            if self.list.issuer_der() == &*issuer.name && self.verdict(issuer).is_none() {
                let verdict = self.list.verify_signature(&issuer.spki).is_ok();
                self.remember(Arc::clone(issuer), verdict);
            }
        }
    }

    /// The CA that has signed it, if it is known.
    pub(super) fn signer(&self) -> Option<Arc<Issuer>> {
        let verdicts = self.verdicts.read();
        let verdicts = verdicts.unwrap_or_else(PoisonError::into_inner);
        let signer = verdicts.iter().find(|(_, verdict)| *verdict);
        signer.map(|(issuer, _)| Arc::clone(issuer))
    }

    /// Notes which CAs have left and which are there. What is known of neither changes nothing.
    pub(super) fn note(&self, left: &[Arc<Issuer>], present: &[Arc<Issuer>]) {
        let Some(signer) = self.signer() else {
            return;
        };
        let is_under = |all: &[Arc<Issuer>]| all.iter().any(|ca| signer.is_under(ca));
        if is_under(present) {
            self.is_retired.store(false, Ordering::Relaxed);
        } else if is_under(left) {
            self.is_retired.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nobody can be verified under its signer any more, so that nobody misses it.
    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// The CA whose key it names and whose signature it hasn't: a list that was tampered with, or cut and mended.
    pub(super) fn broken_under(&self, known: &[Arc<Issuer>]) -> Option<Arc<Issuer>> {
        self.try_all(known);
        let key_id = self.list.authority_key_id()?;
        let claimed = known.iter().find(|issuer| {
            self.list.issuer_der() == &*issuer.name && issuer.key_id.as_deref() == Some(key_id)
        })?;
        let is_broken = self.signer().is_none();
        is_broken.then(|| Arc::clone(claimed))
    }

    fn verdict(&self, issuer: &Issuer) -> Option<bool> {
        let verdicts = self.verdicts.read();
        let verdicts = verdicts.unwrap_or_else(PoisonError::into_inner);
        let known = verdicts.iter().find(|(known, _)| known.key == issuer.key);
        known.map(|(_, verdict)| *verdict)
    }

    fn remember(&self, issuer: Arc<Issuer>, verdict: bool) {
        let verdicts = self.verdicts.write();
        let mut verdicts = verdicts.unwrap_or_else(PoisonError::into_inner);
        if verdicts.iter().any(|(known, _)| known.key == issuer.key) {
            return;
        }
        if verdicts.len() >= MAX_VERDICTS {
            let oldest = verdicts.iter().position(|(_, is_good)| !is_good);
            if let Some(oldest) = oldest {
                verdicts.remove(oldest);
            }
        }
        verdicts.push((issuer, verdict));
    }
}
