//! Whether certificates of a path have been revoked (RFC 5280 §6.3), by lists that are already at hand.

use std::sync::Arc;
use std::time::SystemTime;

use vidimus_x509::cert::Certificate;

use super::Refusal;
use crate::material::{Issuer, Revocation, RevocationCheck, RevocationGap};

/// A certificate of a path with the CA above it, as far as lists are about them.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Which of the presented certificates.
    pub(super) position: usize,
    /// The CA that issued it.
    pub(super) issuer: Arc<Issuer>,
}

/// How many certificates of a path, from its end on, are looked up.
pub(super) fn depth(check: RevocationCheck) -> usize {
    match check {
        RevocationCheck::Off => 0,
        RevocationCheck::Leaf => 1,
        RevocationCheck::Chain => usize::MAX,
    }
}

/// Refuses a certificate that is revoked, or of whose revocation nothing current is known where that is asked for.
///
/// Lists count per issuer key: one of another key of the same name, as in a rotation, says nothing about this certificate.
pub(super) fn check(
    revocation: &Revocation,
    certificate: &Certificate,
    issuer: &Issuer,
    now: SystemTime,
) -> Result<(), Refusal> {
    check_known(revocation, certificate, issuer)?;
    let options = revocation.options();
    let lists = revocation.about(certificate, issuer);
    let latest = lists.iter().map(|list| list.next_update()).max();
    match latest {
        Some(_) if !issuer.may_sign() => unknown(
            options.missing,
            certificate,
            "the key usage of its issuer lacks cRLSign",
        ),
        // RFC 5280 §6.3.3 (a) (1): the list is updated no later than at nextUpdate.
        Some(next_update) if now > next_update && options.stale == RevocationGap::Refuse => {
            Err(Refusal::RevocationStale {
                subject: certificate.subject_text().to_owned(),
                issuer: certificate.issuer_text().to_owned(),
                now,
                next_update,
            })
        }
        Some(_) => Ok(()),
        None => unknown(
            options.missing,
            certificate,
            "no list that its issuer's key has signed is there",
        ),
    }
}

/// Refuses a certificate that is listed, whether or not the list is current.
pub(super) fn check_known(
    revocation: &Revocation,
    certificate: &Certificate,
    issuer: &Issuer,
) -> Result<(), Refusal> {
    if !issuer.may_sign() {
        return Ok(());
    }
    let lists = revocation.about(certificate, issuer);
    match lists
        .iter()
        .find_map(|list| list.find(certificate.serial()))
    {
        Some(revoked) => Err(Refusal::Revoked {
            subject: certificate.subject_text().to_owned(),
            serial: certificate.serial_hex().to_owned(),
            since: revoked.since,
            reason: revoked.reason,
        }),
        None => Ok(()),
    }
}

fn unknown(
    gap: RevocationGap,
    certificate: &Certificate,
    fault: &'static str,
) -> Result<(), Refusal> {
    match gap {
        RevocationGap::Accept => Ok(()),
        RevocationGap::Refuse => Err(Refusal::RevocationUnknown {
            subject: certificate.subject_text().to_owned(),
            issuer: certificate.issuer_text().to_owned(),
            fault,
        }),
    }
}
