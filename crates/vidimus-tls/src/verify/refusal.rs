//! Why a peer's certificate was refused, in words for our own log; the peer is told no more than the alert.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::{CertificateError, Error, ExtendedKeyPurpose, OtherError};
use rustls_pki_types::UnixTime;
use vidimus_x509::crl::Reason;

use crate::clock::rfc3339;

/// Why a peer's certificate was refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A certificate that the peer sent cannot be decoded, or has a name that cannot be.
    #[error("certificate {position} that the peer sent cannot be decoded: {reason}")]
    Unreadable {
        /// Counted from 1; 1 is the peer's own.
        position: usize,
        /// What is wrong.
        reason: String,
    },
    /// No path leads to a root.
    #[error(
        "certificate of {subject:?} was issued by {issuer:?}, which leads to none of the trusted roots"
    )]
    UnknownIssuer {
        /// The peer's name.
        subject: String,
        /// Its issuer's name.
        issuer: String,
    },
    /// A certificate has expired.
    #[error(
        "certificate of {subject:?} has expired: now {}, notBefore {}, notAfter {}",
        rfc3339(*now), rfc3339(*not_before), rfc3339(*not_after)
    )]
    Expired {
        /// Whose certificate: the peer's, an intermediate's or the root's.
        subject: String,
        /// The time of the check.
        now: SystemTime,
        /// The certificate's first instant.
        not_before: SystemTime,
        /// The certificate's last instant.
        not_after: SystemTime,
    },
    /// A certificate is not valid yet.
    #[error(
        "certificate of {subject:?} is not valid yet: now {}, notBefore {}, notAfter {}",
        rfc3339(*now), rfc3339(*not_before), rfc3339(*not_after)
    )]
    NotYetValid {
        /// Whose certificate: the peer's, an intermediate's or the root's.
        subject: String,
        /// The time of the check.
        now: SystemTime,
        /// The certificate's first instant.
        not_before: SystemTime,
        /// The certificate's last instant.
        not_after: SystemTime,
    },
    /// The extended key usages don't allow what the peer does.
    #[error("certificate of {subject:?} lacks the extended key usage {needed}: found {found}")]
    Purpose {
        /// The peer's name.
        subject: String,
        /// `clientAuth` or `serverAuth`.
        needed: &'static str,
        /// What the extension lists.
        found: String,
    },
    /// The key usage doesn't let the peer's key sign a handshake, or contradicts the certificate.
    #[error("key usage of the certificate of {subject:?} {fault}")]
    KeyUsage {
        /// The peer's name.
        subject: String,
        /// What doesn't fit.
        fault: &'static str,
    },
    /// The peer's own certificate is a CA's.
    #[error(
        "certificate of {subject:?} is a CA certificate, which is not accepted for a server or client"
    )]
    IsAuthority {
        /// The peer's name.
        subject: String,
    },
    /// An issuer in the path may not issue.
    #[error("certificate of {subject:?} acts as an issuer but {reason}")]
    NotAnIssuer {
        /// The issuer's name.
        subject: String,
        /// What it lacks.
        reason: &'static str,
    },
    /// The certificate has none of the names that were asked for.
    #[error("certificate of {subject:?} is not valid for {expected:?}: it names {presented}")]
    Name {
        /// The peer's name.
        subject: String,
        /// The name that was connected to.
        expected: String,
        /// The names it has.
        presented: String,
    },
    /// The certificate is not one of those that are pinned.
    #[error("certificate of {subject:?} with SHA-256 {fingerprint} is not one of the pinned ones")]
    NotPinned {
        /// The peer's name.
        subject: String,
        /// What it presented.
        fingerprint: crate::identity::Fingerprint,
    },
    /// A certificate is on its issuer's revocation list.
    #[error(
        "certificate of {subject:?} with serial number {serial} was revoked at {} ({})",
        rfc3339(*since), reason.map_or_else(|| "no reason given".to_owned(), |reason| reason.to_string())
    )]
    Revoked {
        /// Whose certificate: the peer's or an intermediate's.
        subject: String,
        /// Its serial number, hex.
        serial: String,
        /// The date in the list.
        since: SystemTime,
        /// The reason in the list.
        reason: Option<Reason>,
    },
    /// Nothing is known of a certificate's revocation.
    #[error(
        "whether the certificate of {subject:?} has been revoked is not known: {fault} (issuer {issuer:?})"
    )]
    RevocationUnknown {
        /// Whose certificate.
        subject: String,
        /// Its issuer, whose list is missing.
        issuer: String,
        /// What is missing.
        fault: &'static str,
    },
    /// What is known of a certificate's revocation is too old.
    #[error(
        "whether the certificate of {subject:?} has been revoked is not known: the list of {issuer:?} ended at {}, now {}",
        rfc3339(*next_update), rfc3339(*now)
    )]
    RevocationStale {
        /// Whose certificate.
        subject: String,
        /// Its issuer, whose list it is.
        issuer: String,
        /// The time of the check.
        now: SystemTime,
        /// Until when the list counted.
        next_update: SystemTime,
    },
    /// Anything else that path building found.
    #[error("certificate of {subject:?} was refused: {reason}")]
    Path {
        /// The peer's name.
        subject: String,
        /// What was found.
        reason: PathFault,
    },
}

impl Refusal {
    /// The error that makes rustls send the fitting alert (RFC 8446 §6.2).
    pub(crate) fn to_rustls(&self) -> Error {
        let error = match self {
            Self::Unreadable { .. } => CertificateError::BadEncoding,
            Self::UnknownIssuer { .. } | Self::NotAnIssuer { .. } => {
                CertificateError::UnknownIssuer
            }
            Self::Expired { now, not_after, .. } => CertificateError::ExpiredContext {
                time: unix(*now),
                not_after: unix(*not_after),
            },
            Self::NotYetValid {
                now, not_before, ..
            } => CertificateError::NotValidYetContext {
                time: unix(*now),
                not_before: unix(*not_before),
            },
            Self::Purpose { needed, .. } => CertificateError::InvalidPurposeContext {
                required: match *needed {
                    "clientAuth" => ExtendedKeyPurpose::ClientAuth,
                    _ => ExtendedKeyPurpose::ServerAuth,
                },
                presented: Vec::new(),
            },
            Self::KeyUsage { .. } | Self::IsAuthority { .. } => CertificateError::InvalidPurpose,
            Self::Name { .. } => CertificateError::NotValidForName,
            Self::NotPinned { .. } => CertificateError::ApplicationVerificationFailure,
            Self::Revoked { .. } => CertificateError::Revoked,
            // rustls would blame the CA (unknown_ca); what is missing is ours: certificate_unknown.
            Self::RevocationUnknown { .. } | Self::RevocationStale { .. } => {
                CertificateError::Other(OtherError(Arc::new(self.clone())))
            }
            Self::Path { reason, .. } => of_path(&reason.0),
        };
        Error::InvalidCertificate(error)
    }

    /// A word for metrics: few, fixed, and without anything from the certificate.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::UnknownIssuer { .. } => "unknown_issuer",
            Self::Expired { .. } => "expired",
            Self::NotYetValid { .. } => "not_yet_valid",
            Self::Purpose { .. } => "wrong_purpose",
            Self::KeyUsage { .. } => "key_usage",
            Self::IsAuthority { .. } => "ca_certificate",
            Self::NotAnIssuer { .. } => "not_an_issuer",
            Self::Name { .. } => "wrong_name",
            Self::NotPinned { .. } => "not_pinned",
            Self::Revoked { .. } => "revoked",
            Self::RevocationUnknown { .. } => "revocation_unknown",
            Self::RevocationStale { .. } => "revocation_stale",
            Self::Path { .. } => "path",
        }
    }
}

/// What is wrong with a path, in webpki's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathFault(pub(crate) webpki::Error);

fn of_path(error: &webpki::Error) -> CertificateError {
    match error {
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        webpki::Error::CertRevoked => CertificateError::Revoked,
        other => CertificateError::Other(OtherError(Arc::new(other.clone()))),
    }
}

fn unix(time: SystemTime) -> UnixTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    UnixTime::since_unix_epoch(since)
}
