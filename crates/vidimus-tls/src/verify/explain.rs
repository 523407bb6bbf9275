//! What webpki found, with the names and dates that a person needs.

use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use vidimus_x509::cert::Certificate;

use super::{PathFault, Purpose, Refusal, facts};
use crate::clock::to_system_time;

/// webpki's error with the names and dates that a person needs.
pub(super) fn explain(
    error: webpki::Error,
    leaf: &Certificate,
    intermediates: &[CertificateDer<'_>],
    now: SystemTime,
    purpose: Purpose,
) -> Refusal {
    let subject = leaf.subject_text().to_owned();
    match error {
        webpki::Error::UnknownIssuer => unknown_issuer(leaf),
        webpki::Error::CertExpired { not_after, .. } => {
            let culprit = with_dates(leaf, intermediates, |c| {
                c.not_after() == to_system_time(not_after)
            });
            Refusal::Expired {
                subject: culprit.subject_text().to_owned(),
                now,
                not_before: culprit.not_before(),
                not_after: culprit.not_after(),
            }
        }
        webpki::Error::CertNotValidYet { not_before, .. } => {
            let culprit = with_dates(leaf, intermediates, |c| {
                c.not_before() == to_system_time(not_before)
            });
            Refusal::NotYetValid {
                subject: culprit.subject_text().to_owned(),
                now,
                not_before: culprit.not_before(),
                not_after: culprit.not_after(),
            }
        }
        webpki::Error::RequiredEkuNotFoundContext(_) => Refusal::Purpose {
            subject,
            needed: purpose.name(),
            found: facts::extended_key_usages(leaf)
                .unwrap_or_default()
                .join(", "),
        },
        webpki::Error::CaUsedAsEndEntity => Refusal::IsAuthority { subject },
        webpki::Error::EndEntityUsedAsCa => not_an_issuer(
            leaf.issuer_text(),
            "is not a CA certificate (basicConstraints CA:TRUE)",
        ),
        reason => Refusal::Path {
            subject,
            reason: PathFault(reason),
        },
    }
}

/// The certificate that webpki spoke of, recognised by its date; the leaf if none fits.
fn with_dates(
    leaf: &Certificate,
    intermediates: &[CertificateDer<'_>],
    fits: impl Fn(&Certificate) -> bool,
) -> Certificate {
    if fits(leaf) {
        return leaf.clone();
    }
    let parsed = intermediates
        .iter()
        .filter_map(|der| Certificate::parse(der).ok());
    parsed
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| leaf.clone())
}

pub(super) fn not_an_issuer(subject: &str, reason: &'static str) -> Refusal {
    Refusal::NotAnIssuer {
        subject: subject.to_owned(),
        reason,
    }
}

pub(super) fn unknown_issuer(certificate: &Certificate) -> Refusal {
    Refusal::UnknownIssuer {
        subject: certificate.subject_text().to_owned(),
        issuer: certificate.issuer_text().to_owned(),
    }
}
