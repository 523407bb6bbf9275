//! What a path must fulfil beyond what webpki asks of it: the rules for its CAs, and revocation.

use std::sync::Arc;
use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use vidimus_x509::cert::Certificate;
use webpki::VerifiedPath;

use super::Refusal;
use super::explain::not_an_issuer;
use super::facts::{self, PathConstraints};
use super::path::decode;
use super::revocation::{self, Link};
use crate::material::{Issuer, Root, Trust};

/// A path that fulfils everything, its certificates read.
pub(super) struct Approved<'a> {
    pub(super) root: &'a Root,
    /// From the end entity's issuer on, without the root.
    intermediates: Vec<(CertificateDer<'static>, Certificate)>,
}

impl<'a> Approved<'a> {
    /// RFC 5280 §6.1.4 (k), (m) and (n) for the issuers of the path, the same for the root, whose fields the trust anchor
    /// of §6.1.1 (d) doesn't carry, and §6.1.3 (a) (3) as far as it is asked for.
    pub(super) fn check(
        trust: &'a Trust,
        path: &VerifiedPath<'_>,
        leaf: &Certificate,
        now: SystemTime,
    ) -> Result<Self, Refusal> {
        let Some(root) = trust.root_of(path.anchor()) else {
            return Err(not_an_issuer("unknown", "is not one of the trusted roots"));
        };
        if let Some(fault) = root.fault() {
            return Err(not_an_issuer(root.subject(), fault));
        }
        check_root_dates(root, now)?;
        let mut intermediates = Vec::new();
        let mut below_root: u32 = 0;
        for intermediate in path.intermediate_certificates() {
            let der = intermediate.der();
            let issuer = decode(&der, 2)?;
            if let Some(fault) = facts::issuer_fault(&issuer) {
                return Err(not_an_issuer(issuer.subject_text(), fault));
            }
            // Self-issued certificates don't count against the limit (RFC 5280 §6.1.4 (l)).
            if issuer.subject_der() != issuer.issuer_der() {
                below_root = below_root.saturating_add(1);
            }
            intermediates.push((der.into_owned(), issuer));
        }
        if root.path_len().is_some_and(|limit| below_root > limit) {
            return Err(not_an_issuer(
                root.subject(),
                "its path length allows fewer intermediates",
            ));
        }
        let approved = Self {
            root,
            intermediates,
        };
        for (certificate, issuer) in approved.looked_up(trust, leaf) {
            revocation::check(trust.revocation(), certificate, &issuer, now)?;
        }
        Ok(approved)
    }

    /// What the CAs of the path say about the names below them.
    pub(super) fn constraints(&self) -> PathConstraints {
        let issuers = self.intermediates.iter().map(|(_, issuer)| issuer);
        issuers.fold(self.root.constraints().clone(), |all, issuer| {
            all.and(PathConstraints::of(issuer))
        })
    }

    /// The first instant after which one of the path's certificates has expired.
    pub(super) fn earliest_not_after(&self, leaf: &Certificate) -> SystemTime {
        let issuers = self.intermediates.iter();
        let ends = issuers.map(|(_, issuer)| issuer.not_after());
        ends.fold(leaf.not_after().min(self.root.not_after()), SystemTime::min)
    }

    /// What to look up again when the lists change: nothing if none are asked for.
    pub(super) fn links(
        &self,
        trust: &Trust,
        leaf: &Certificate,
        presented: &[CertificateDer<'_>],
    ) -> Arc<[Link]> {
        let ders = self.intermediates.iter().map(|(der, _)| der);
        // The end entity is the first that was presented; a CA may have been presented twice, which is no matter.
        let positions = std::iter::once(Some(0))
            .chain(ders.map(|der| presented.iter().position(|other| other == der)));
        self.looked_up(trust, leaf)
            .zip(positions)
            .filter_map(|((_, issuer), position)| {
                let position = position?;
                Some(Link { position, issuer })
            })
            .collect()
    }

    /// The certificates that lists are asked about, each with the CA above it.
    fn looked_up<'b>(
        &'b self,
        trust: &Trust,
        leaf: &'b Certificate,
    ) -> impl Iterator<Item = (&'b Certificate, Arc<Issuer>)> {
        let depth = revocation::depth(trust.revocation().options().check());
        let below = std::iter::once(leaf).chain(self.intermediates.iter().map(|(_, own)| own));
        let above = self
            .intermediates
            .iter()
            .map(|(_, own)| Arc::new(Issuer::of(own)))
            .chain(std::iter::once_with(|| Arc::clone(self.root.issuer())));
        below.zip(above).take(depth)
    }
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
