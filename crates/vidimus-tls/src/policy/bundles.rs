//! The roots of SPIFFE trust domains.

use std::collections::BTreeMap;
use std::sync::Arc;

use vidimus_x509::cert::Certificate;
use vidimus_x509::pem;

use crate::identity::Fingerprint;
use crate::verify::facts;

/// Which roots may vouch for which trust domain. No root vouches for two.
#[derive(Debug, Default)]
pub(super) struct Bundles(BTreeMap<String, Arc<[Fingerprint]>>);

impl Bundles {
    /// Adds the roots, PEM, of a trust domain.
    ///
    /// # Errors
    ///
    /// What was found.
    pub(super) fn add(&mut self, domain: &str, bundle: &[u8]) -> Result<(), String> {
        let ders = pem::certificates(bundle).map_err(|error| error.to_string())?;
        if ders.is_empty() {
            return Err("no certificate".to_owned());
        }
        let mut anchors = Vec::with_capacity(ders.len());
        for (index, der) in ders.iter().enumerate() {
            let position = index.saturating_add(1);
            let certificate = Certificate::parse(der)
                .map_err(|error| format!("certificate {position}: {error}"))?;
            if let Some(fault) = facts::root_fault(&certificate) {
                let subject = certificate.subject_text();
                return Err(format!(
                    "certificate {position}, {subject:?}, which {fault}"
                ));
            }
            let anchor = Fingerprint::of(der);
            if let Some(other) = self.domain_of(anchor) {
                let subject = certificate.subject_text();
                return Err(format!(
                    "certificate {position}, {subject:?}, which is in the bundle of {other} too"
                ));
            }
            anchors.push(anchor);
        }
        self.0.insert(domain.to_owned(), anchors.into());
        Ok(())
    }

    /// Notes a trust domain whose roots are not to be had, so that the entries that name it are not blamed.
    pub(super) fn add_unusable(&mut self, domain: &str) {
        self.0.insert(domain.to_owned(), Arc::from([]));
    }

    pub(super) fn anchors(&self, domain: &str) -> Option<Arc<[Fingerprint]>> {
        self.0.get(domain).cloned()
    }

    fn domain_of(&self, anchor: Fingerprint) -> Option<&str> {
        let mut domains = self.0.iter();
        let of = domains.find(|(_, anchors)| anchors.contains(&anchor));
        of.map(|(domain, _)| domain.as_str())
    }
}
